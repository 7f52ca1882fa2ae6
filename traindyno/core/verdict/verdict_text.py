"""The verdict in plain language: a headline, what the work takes, how certain that is, its evidence
and its limits.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from traindyno.core.costs.quantity_text import (
    count_text,
    counted,
    interval_text,
    is_end_known,
    joined,
    number_text,
    seconds_text,
    share_text,
    usd_text,
)
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cautions import count_missing, describe_cautions
from traindyno.core.verdict.cell_row import CellQuality, CellRow
from traindyno.core.verdict.open_text import (
    describe_open,
    describe_search,
    none_near,
    open_reasons_text,
)
from traindyno.core.verdict.slow_steps import CellSteps, describe_steps
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.figures.estimates import Estimate, Interval
from traindyno.figures.selection import MOST_TRIALS, POWER, Relation, Rival

MOST_CHANGES = 6
MOST_CROSSOVERS = 2
MOST_NAMES = 3
# A work is many times longer than a trial from here on; a third of it, and no more minutes, confirm
# a leader.
LONG_WORK_SECONDS = 600
TIMES_LONGER = 10
MOST_MINUTES = 20


HEADLINES = {
    Finding.RECOMMENDED: "Use {cell}: it is {goal}.",
    Finding.WITHIN_TOLERANCE: "Use {cell}{within}.",
    Finding.UNDECIDED: "{undecided}.",
    Finding.TOO_FEW_TRIALS: "{cell} was {goal}{once}.",
    Finding.ONE_SEED: "{cell} was {goal}{seed}.",
    Finding.ONLY_ONE: "Use {cell}: {only}.",
    Finding.UNLIKE_WORK: "No recommendation: {unlike}.",
    Finding.NONE_WITHIN_LIMIT: "No measured cell qualifies as {goal}.",
    Finding.NONE_MEASURED: "No cell was measured: {ended}.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictText:
    """A verdict in sentences: ``work`` and ``certainty`` in plain language, ``support`` with the
    statistics.
    """

    headline: str
    work: str
    certainty: str
    support: tuple[str, ...]
    changes: tuple[str, ...]
    cautions: tuple[str, ...]

    @property
    def lead(self) -> tuple[str, str, str]:
        return self.headline, self.work, self.certainty


def describe_verdict(verdict: Verdict) -> VerdictText:
    return VerdictText(
        headline=_headline(verdict)
        + (f" {count_missing(verdict)}." if verdict.missing.run_ids else ""),
        work=_work(verdict),
        certainty=_certainty(verdict),
        support=tuple(_support(verdict, verdict.best)) if verdict.best else (),
        changes=tuple(_changes(verdict))[:MOST_CHANGES],
        cautions=tuple(describe_cautions(verdict)),
    )


def describe_goal(goal: Goal) -> str:
    match goal.kind:
        case GoalKind.CHEAPEST:
            return "cheapest"
        case GoalKind.FASTEST:
            return "fastest"
        case GoalKind.CHEAPEST_WITHIN:
            return f"cheapest within {goal.hours} h"
        case GoalKind.FASTEST_WITHIN:
            return f"fastest within {usd_text(goal.usd)}"
        case GoalKind.CHEAPEST_TO:
            return f"cheapest to {goal.target}"
        case GoalKind.FASTEST_TO:
            return f"fastest to {goal.target}"


def saving_text(ratio: float, interval: Interval | None) -> str:
    """How much less the first needs than the second: ``11.3 % (95% interval 8.1 to 14.4 %)``."""
    if interval is None or not is_end_known(interval.low, interval.high):
        return share_text(1 - ratio)
    ends = f"{(1 - interval.high) * 100:z.1f} to {(1 - interval.low) * 100:z.1f} %"
    return (
        f"{share_text(1 - ratio)} ({100 * interval.confidence:.4g}% interval "
        f"{ends.replace('-', '−')})"
    )


def _headline(verdict: Verdict) -> str:
    row = verdict.best
    equal = _labels(verdict, Relation.EQUIVALENT)
    within = f": no other cell is {_better(verdict)} by more than {_tolerance(verdict)}"
    if equal and not verdict.related(Relation.NOT_BETTER):
        named = joined(equal) if len(equal) <= MOST_NAMES else f"{len(equal)} other cells"
        within = f"; {named} {'is' if len(equal) == 1 else 'are'} within {_tolerance(verdict)}"
    seed = " for this seed; other seeds may give another order"
    if verdict.is_simulated:
        seed = " in simulated runs, which do not train: real ones may give another order"
    error = f" (wrong in at most {share_text(verdict.level, digits=0)} of suites)"
    return HEADLINES[verdict.finding].format(
        cell=row.label if row else None,
        goal=describe_goal(verdict.goal),
        within=within + error,
        only=none_near(verdict) or _only(verdict),
        seed=seed,
        undecided=_undecided(verdict, row)
        if row and verdict.finding is Finding.UNDECIDED
        else None,
        once=_once(verdict),
        unlike=verdict.likeness.unlike,
        ended=_ended(verdict.rows),
    ) + (_note(verdict, row) + _baseline(verdict) if row else "")


def _once(verdict: Verdict) -> str:
    if verdict.rivals:
        return ", but cells with one trial can't be compared"
    others = [row for row in verdict.rows if row.outcomes and row.cell_id != verdict.recommended]
    return f"; {counted(len(others), 'other cell')} ran once"


def _only(verdict: Verdict) -> str:
    if len(verdict.rows) == 1:
        return "it is the suite's only cell"
    without = [row for row in verdict.rows if row.outcomes and not row.trials]
    if not without:
        return "it is the only cell that qualifies"
    others = [row for row in without if row.cell_id != verdict.missing.baseline]
    named = "; ".join(f"{row.label}: {_ended([row])}" for row in others[:MOST_NAMES])
    more = f"; {len(others) - MOST_NAMES} more" if len(others) > MOST_NAMES else ""
    that = " that qualifies" if verdict.refused else ""
    return f"it is the only cell with a result{that}{f' ({named}{more})' if named else ''}"


def _baseline(verdict: Verdict) -> str:
    if verdict.missing.baseline is None:
        return ""
    row = verdict.row(verdict.missing.baseline)
    return f" The baseline, {row.label}, has no result: {_ended([row])}."


def _ended(rows: Sequence[CellRow]) -> str:
    ended = {outcome for row in rows for outcome in row.outcomes}
    failed = ", ".join(
        outcome.replace("_", " ") for outcome in sorted(ended - {"completed", "cost_stopped"})
    )
    if failed or not ended:
        return f"the runs ended as {failed}" if ended else "no run has ended"
    message = next((f": {row.message}" for row in rows if row.message), "")
    return f"the runs ended before a rate could be measured{message}"


def _undecided(verdict: Verdict, row: CellRow) -> str:
    labels = _labels(verdict, Relation.OPEN, Relation.UNKNOWN)
    cells = (
        joined([row.label, *labels])
        if len(labels) < MOST_NAMES
        else f"{row.label} and {len(labels)} other cells"
    )
    if verdict.to_decide.longer_trials:
        return f"{cells} can't be told apart yet{open_reasons_text(verdict)}"
    if verdict.to_decide.other_hosts:
        return f"{cells} can't be told apart on these hosts: trials on other hosts are needed"
    return f"{cells} can't be told apart yet: {_deciding_trials(verdict)} would decide"


def _deciding_trials(verdict: Verdict) -> str:
    """The fields of a suite whose trials decide. The number is of a grid: a race, which judges
    several looks, runs only its leading cells so often.
    """
    if verdict.to_decide.trials is None:
        return f"no measurement.trials up to {MOST_TRIALS}"
    search = "search: grid with " if verdict.significance != verdict.level else ""
    return f"{search}measurement.trials: {verdict.to_decide.trials}"


def _note(verdict: Verdict, row: CellRow) -> str:
    """Failed trials of the recommended cell, and how far the figure of short trials can be relied
    on.
    """
    diverged = f", {row.diverged} diverged" if row.diverged else ""
    failed = (
        f" Note: {row.failed} of its {row.attempted} trials failed{diverged}." if row.failed else ""
    )
    is_short = row.steadiness.unsteady_trials and not verdict.goal.target
    is_short = is_short and row.steadiness.long_run_seconds is None
    ran = row.steadiness.measured_seconds
    work = row.seconds
    rate = row.steps_per_second
    if not is_short or ran is None or work is None or rate is None or ran >= work.mean:
        return failed
    reach = row.prediction.seconds if row.prediction and row.prediction.seconds else work.interval
    error = ""
    if reach and is_end_known(reach.low, reach.high):
        share = max(0.01, (reach.high - reach.low) / 2 / work.mean)
        within = (
            f"± {share_text(share, digits=0)}"
            if share < 1
            else interval_text(reach.low, reach.high, seconds_text)
        )
        error = f": take it as {within}"
    # ten times as long, in a round number; at most the whole work
    steps = float(f"{10 * ran * rate.mean:.0e}")
    if row.samples_per_second is not None:
        steps = min(steps, ceil(verdict.examples * rate.mean / row.samples_per_second.mean))
    longer = f"let the script do {steps:.0f} steps"
    if not verdict.to_decide.is_script:
        longer = f"measurement.max_steps: {steps:.0f}"
    times = f"The trials ran for {seconds_text(ran)} each, the work takes {seconds_text(work.mean)}"
    return f"{failed} {times}{error}; for longer trials: {longer}."


def _work(verdict: Verdict) -> str:
    row = verdict.best
    is_whole = verdict.goal.target is None
    if verdict.finding is Finding.UNLIKE_WORK and len(verdict.rows) > 1:
        return (
            f"The {len(verdict.rows)} cells do unlike work, so their rates say nothing about which "
            "is best."
        )
    if row is None:
        return (
            f"There is nothing to compare for this goal among {counted(len(verdict.rows), 'cell')}."
        )
    estimated = row if is_whole else row.part(CellQuality)
    prediction = row.prediction if is_whole else None
    time = (
        _about(estimated.seconds, prediction.seconds if prediction else None, seconds_text)
        or "an unknown time"
    )
    cost = (
        _about(estimated.usd, prediction.usd if prediction else None, usd_text)
        or "an unknown amount"
    )
    work = (
        f"The whole work ({count_text(verdict.examples)} examples)"
        if is_whole
        else f"Training to {verdict.goal.target}"
    )
    return f"{work} takes {time} and costs {cost}{_against_next(verdict)}."


def _about(
    estimated: Estimate | None, one_run: Interval | None, text: Callable[[float], str]
) -> str | None:
    within = (
        f" (nine of ten runs: {interval_text(one_run.low, one_run.high, text)})" if one_run else ""
    )
    return f"about {text(estimated.mean)}{within}" if estimated else None


def _against_next(verdict: Verdict) -> str:
    rival = verdict.runner_up
    if rival is None or rival.comparison.ratio >= 1:
        return ""
    what = (
        "time" if verdict.metric.is_time else "cost" if verdict.metric.is_money else "instance time"
    )
    next_best = verdict.row(rival.cell_id).label
    ratio = rival.comparison.ratio
    if rival.relation is not Relation.BEATEN:
        return (
            f"; the next best, {next_best}, was measured at {share_text(1 / ratio - 1)} more {what}"
        )
    return f", {share_text(1 - ratio)} less {what} than the next best, {next_best}"


def _certainty(verdict: Verdict) -> str:
    runs = sum(sum(row.outcomes.values()) for row in verdict.rows)
    measured = sum(
        row.trials + (row.steadiness.long_run_seconds is not None) for row in verdict.rows
    )
    ended = counted(runs, "simulated run" if verdict.is_simulated else "run")
    told = ended if measured == runs else f"{measured} of {ended}"
    told += (
        f" measured {sum(row.trials > 0 for row in verdict.rows)} of "
        f"{counted(len(verdict.rows), 'cell')}"
    )
    if verdict.spent_usd is not None:
        told += (
            f"{' and' if measured == runs else f'; the {ended}'} cost {usd_text(verdict.spent_usd)}"
        )
    wrong = f"wrong in at most {ceil(100 * verdict.level)} of 100 such suites"
    not_better = f"no other cell is better by more than {_tolerance(verdict)}"
    certainty = {
        Finding.RECOMMENDED: f"; the claim that it is the best is {wrong}",
        Finding.WITHIN_TOLERANCE: f"; {not_better}, a claim that is {wrong}",
        Finding.UNDECIDED: "; they do not tell the best cells apart",
        Finding.TOO_FEW_TRIALS: "; they do not tell the best cells apart",
    }.get(verdict.finding, "")
    return f"{told}{certainty}.{_unseen(verdict)}"


def _unseen(verdict: Verdict) -> str:
    """What trials can't show of a work that is many times longer, or what a long run has shown of
    it.
    """
    best = verdict.best
    if best is None or best.seconds is None or verdict.goal.target is not None:
        return ""
    work = best.seconds.mean
    ran = best.steadiness.measured_seconds
    long = best.steadiness.long_run_seconds
    if long is not None:
        seen = f"what begins in that time, or recurs each {seconds_text(long / 3)}, is counted"
        return f" Its figures are those of a run of {seconds_text(long)}: {seen}."
    lost = [row for row in verdict.rows if row.steadiness.lost_long_run]
    if lost:
        ends = "; ".join(
            f"{row.label}: {str(row.steadiness.lost_long_run).replace('_', ' ')}" for row in lost
        )
        told = "".join(
            f" The long run of {row.label} took {number_text(row.steadiness.unpaired_ratio)} times "
            "as long a step as its trials: that is not counted."
            for row in verdict.rows
            if row.steadiness.unpaired_ratio is not None
        )
        return (
            f" Not confirmed: a long run has no result ({ends}); the figures are of trials.{told}"
        )
    if ran is None or work < max(LONG_WORK_SECONDS, TIMES_LONGER * ran):
        return ""
    return (
        f" Trials of {seconds_text(ran)} can't show what begins later in a work of "
        f"{seconds_text(work)} or is rare, such as throttling and a long checkpoint: that is not "
        f"counted. confirm: {{minutes: {min(MOST_MINUTES, round(work / 180))}}} runs the two "
        "leaders for so long."
    )


def _support(verdict: Verdict, best: CellRow) -> Iterator[str]:
    if verdict.runner_up:
        yield _margin(verdict, best, verdict.runner_up)
    baseline = verdict.against_baseline
    if baseline:
        needs = "it needs" if baseline.is_detected else "no difference is detected:"
        is_told = baseline.cell_id == (verdict.runner_up and verdict.runner_up.cell_id)
        saving = saving_text(baseline.ratio, None if is_told else baseline.interval)
        yield f"Against the baseline, {verdict.row(baseline.cell_id).label}, {needs} {saving} less."
    for row in [best, *(verdict.row(rival.cell_id) for rival in verdict.rivals[:1])]:
        yield from describe_steps(row.label, row.part(CellSteps))
    yield from describe_search(verdict)
    parities = verdict.likeness.parities
    if parities and all(parity.finding is ParityFinding.AGREES for parity in parities):
        count = len(parities) + len({parity.reference_cell_id for parity in parities})
        tolerance = share_text(parities[0].tolerance)
        yield f"The losses of the {count} cells that should learn alike agree within {tolerance}."


def _margin(verdict: Verdict, best: CellRow, rival: Rival) -> str:
    second = verdict.row(rival.cell_id)
    trials = f"{best.trials} and {second.trials} trials"
    saving = saving_text(rival.comparison.ratio, rival.comparison.interval)
    if rival.relation is Relation.BEATEN:
        return f"That is {saving} less than the runner-up, {second.label} ({trials})."
    if rival.relation in (Relation.EQUIVALENT, Relation.NOT_BETTER):
        return (
            f"It was {saving} below {second.label} ({trials}), which is not {_better(verdict)} by "
            f"more than {_tolerance(verdict)}."
        )
    least = share_text(verdict.significance, digits=2)
    doubt = (
        "This difference may be noise"
        if verdict.significance == verdict.level
        else f"The difference isn't significant yet (at {least})"
    )
    return f"It was {saving} below {second.label} ({trials}). {doubt}."


def _changes(verdict: Verdict) -> Iterator[str]:
    if verdict.finding is Finding.UNLIKE_WORK:
        yield (
            "The rates of these cells can't be compared. Put `with step_log.step(...)` around "
            "each optimizer step, and count the source examples that this process trains on in "
            "it: samples=..., or a batch whose first dimension they are."
        )
    if verdict.finding is Finding.UNDECIDED and verdict.to_decide.trials:
        run = verdict.row(verdict.recommended or "").trials
        yield (
            f"A suite of these cells with {verdict.to_decide.trials} trials of each ({run} were "
            f"run) settles it with a probability of {share_text(POWER, digits=0)}."
        )
    yield from describe_open(verdict)
    if verdict.finding is Finding.ONE_SEED and not verdict.is_simulated:
        yield "Trials with a seed each show what depends on it: see measurement.seed_argument."
    if verdict.finding is Finding.TOO_FEW_TRIALS:
        yield "Two trials of each cell give an interval; five give a useful one."
    for break_even in verdict.sensitivity.break_evens:
        label = verdict.row(break_even.cell_id).label
        then = usd_text(break_even.usd_per_instance_hour)
        now = usd_text(break_even.now_usd_per_instance_hour)
        yield f"{label} would break even at {then}/h for {break_even.instance} (now {now}/h)."
    for crossing in sorted(verdict.sensitivity.crossovers, key=lambda crossing: -crossing.examples)[
        :MOST_CROSSOVERS
    ]:
        label = verdict.row(crossing.cell_id).label
        yield (
            f"For fewer than {count_text(crossing.examples)} examples, {label} is "
            f"{_better(verdict)}."
        )


def _labels(verdict: Verdict, *relations: Relation) -> list[str]:
    return [verdict.row(rival.cell_id).label for rival in verdict.related(*relations)]


def _tolerance(verdict: Verdict) -> str:
    return f"{verdict.tolerance * 100:g} %"


def _better(verdict: Verdict) -> str:
    return "faster" if verdict.metric.is_time else "cheaper"
