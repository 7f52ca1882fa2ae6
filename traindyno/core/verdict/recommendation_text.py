"""The recommendation in three sentences: what to use, what it costs and saves, and how certain that is."""

from collections.abc import Callable

from traindyno.core.costs.quantity_text import count_text, interval_text, seconds_text, share_text, usd_text
from traindyno.core.statistics.distributions import SIGNIFICANCE
from traindyno.core.statistics.estimates import Interval
from traindyno.core.statistics.selection import Relation
from traindyno.core.verdict.open_text import none_near
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_verdict

# Why nothing is said about the certainty.
_REASONS = {
    Finding.ONE_SEED: "; trials of a cell that share a seed do not show which cell is best for other seeds",
}


def recommendation_sentences(verdict: Verdict) -> tuple[str, str, str]:
    """Plain language without terms of statistics; ``describe_verdict`` gives the statistics."""
    return describe_verdict(verdict).headline, _work_sentence(verdict), _confidence_sentence(verdict)


def _work_sentence(verdict: Verdict) -> str:
    row = verdict.expected
    if verdict.finding is Finding.UNLIKE_WORK:
        return f"The {len(verdict.rows)} cells do unlike work, so their rates say nothing about which is best."
    if row is None:
        return f"There is nothing to compare for this goal among the {len(verdict.rows)} cells."
    is_whole = verdict.goal.target is None
    seconds, usd = (row.seconds, row.usd) if is_whole else (row.quality.seconds, row.quality.usd)
    examples = f"The whole work ({count_text(verdict.examples)} examples)"
    work = examples if is_whole else f"Training to {verdict.goal.target}"
    prediction = row.prediction if is_whole else None
    one_run = (prediction.seconds, prediction.usd) if prediction else (None, None)
    time = f"about {seconds_text(seconds.mean)}{_within(one_run[0], seconds_text)}" if seconds else "an unknown time"
    cost = f"about {usd_text(usd.mean)}{_within(one_run[1], usd_text)}" if usd else "an unknown amount"
    return f"{work} takes {time} and costs {cost}{_against_next(verdict)}."


def _within(one_run: Interval | None, text: Callable[[float], str]) -> str:
    return f" (nine of ten runs: {interval_text(one_run.low, one_run.high, text)})" if one_run else ""


def _against_next(verdict: Verdict) -> str:
    rival = verdict.runner_up
    if rival is None:
        return ""
    less = 1 - rival.comparison.ratio
    if less <= 0:
        return ""
    what = "time" if verdict.metric.is_time else "cost" if verdict.metric.is_money else "instance time"
    next_best = verdict.row(rival.cell_id).label
    if rival.relation is not Relation.BEATEN:
        more = share_text(1 / rival.comparison.ratio - 1)
        return f"; the next best, {next_best}, was measured at {more} more {what}"
    return f", {share_text(less)} less {what} than the next best, {next_best}"


def _confidence_sentence(verdict: Verdict) -> str:
    runs = sum(sum(row.outcomes.values()) for row in verdict.rows)
    measured = sum(row.trials > 0 for row in verdict.rows)
    cost = f" and cost {usd_text(verdict.spent_usd)}" if verdict.spent_usd is not None else ""
    kind = "simulated runs" if verdict.is_simulated else "runs"
    return f"{runs} {kind} measured {measured} of {len(verdict.rows)} cells{cost}{_certainty(verdict)}."


def _certainty(verdict: Verdict) -> str:
    match verdict.finding:
        case Finding.RECOMMENDED:
            return f"; the claim that it is the best is{_wrongly()}"
        case Finding.WITHIN_TOLERANCE:
            return f"; no other cell is better by more than {verdict.tolerance * 100:g} %, a claim that is{_wrongly()}"
        case Finding.ONLY_ONE:
            return f"; {none_near(verdict) or 'no other cell qualifies for the goal'}"
        case Finding.UNDECIDED | Finding.TOO_FEW_TRIALS:
            return f"; {_why_undecided(verdict)}"
        case _:
            return _REASONS.get(verdict.finding, "")


def _why_undecided(verdict: Verdict) -> str:
    if verdict.finding is Finding.UNDECIDED and verdict.is_without_interruptions:
        return "at the observed rate of interruptions, no run of the whole work would end"
    if verdict.finding is Finding.UNDECIDED and verdict.needs_longer_trials:
        return "these leave open more than the best cells differ by"
    if verdict.finding is Finding.UNDECIDED and verdict.needs_other_hosts:
        return "more runs on these hosts do not tell the best cells apart: it takes other hosts"
    return "these are too few runs to tell the best cells apart"


def _wrongly() -> str:
    return f" wrong in at most {SIGNIFICANCE * 100:g} of 100 such suites"
