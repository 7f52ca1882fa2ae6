"""The verdict in plain language: a headline, what supports it, what would change it, and what to beware of."""

from collections.abc import Iterator
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import count_text, number_text, range_text, seconds_text, share_text, usd_text
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.measurement.statistics import Estimate, Interval
from traindyno.core.suite.suite import Goal, GoalKind
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.confounds import Confound
from traindyno.core.verdict.goal_metric import Metric, estimate_of, may_break_limit
from traindyno.core.verdict.verdict import Finding, Pair, Verdict

MOST_CHANGES = 6
MOST_CROSSOVERS = 2
# Identical runs on hardware of one's own differ by 1 to 5 %; beyond a tenth something else is at work.
NOISY_VARIATION = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictText:
    headline: str
    support: tuple[str, ...]
    changes: tuple[str, ...]
    cautions: tuple[str, ...]


def describe_verdict(verdict: Verdict) -> VerdictText:
    return VerdictText(
        headline=_headline(verdict),
        support=tuple(_support(verdict)),
        changes=tuple(_changes(verdict))[:MOST_CHANGES],
        cautions=tuple(_cautions(verdict)),
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


def metric_text(metric: Metric, value: float | None) -> str:
    match metric:
        case Metric.SECONDS:
            return seconds_text(value)
        case Metric.USD:
            return usd_text(value)
        case Metric.INSTANCE_HOURS:
            return f"{number_text(value)} instance hours"


def saving_text(pair: Pair) -> str:
    """How much less the first needs than the second: ``11.3 % (8.1 to 14.4 %)``."""
    return f"{share_text(1 - pair.comparison.ratio)}{_saving_interval(pair.comparison.interval)}"


def _saving_interval(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" ({interval.confidence:.0%} interval {saving_interval_text(interval)})"


def saving_interval_text(interval: Interval) -> str:
    """Of a ratio, as a saving; as factors where a saving below -100 % would tell nobody anything."""
    if interval.high > 2:
        return f"{number_text(interval.low)} to {number_text(interval.high)} times"
    return f"{(1 - interval.high) * 100:.1f} to {(1 - interval.low) * 100:.1f} %".replace("-", "−")


def _headline(verdict: Verdict) -> str:
    goal = describe_goal(verdict.goal)
    match verdict.finding:
        case Finding.NONE_MEASURED:
            return "No cell was measured: every run ended before its steady state."
        case Finding.NONE_WITHIN_LIMIT:
            return f"No measured cell qualifies as {goal}."
    label = verdict.row(verdict.recommended or "").label
    match verdict.finding:
        case Finding.ONLY_ONE:
            return f"Use {label}: it is the only cell that qualifies."
        case Finding.TOO_FEW_TRIALS:
            return f"{label} came out {goal}, but with one trial of a cell nothing can be claimed."
        case Finding.NO_DETECTABLE_DIFFERENCE:
            level = [verdict.row(cell_id).label for cell_id in verdict.level_with]
            names = level[0] if len(level) == 1 else f"{len(level)} other cells"
            return f"No detectable difference between {label} and {names}."
        case _:
            return f"Use {label}: it is {goal}."


def _support(verdict: Verdict) -> Iterator[str]:
    if verdict.recommended is None:
        return
    label = verdict.row(verdict.recommended).label
    yield f"{label} would do the work of {count_text(verdict.examples)} examples {_needs(verdict)}."
    if verdict.margin and verdict.runner_up:
        yield _margin(verdict, verdict.margin, verdict.row(verdict.runner_up))
    baseline = verdict.against_baseline
    if baseline and baseline.second_cell_id != verdict.runner_up:
        yield f"Against the baseline, {verdict.row(baseline.second_cell_id).label}, it is {saving_text(baseline)} less."
    if verdict.parities and all(parity.finding is ParityFinding.AGREES for parity in verdict.parities):
        references = {parity.reference_cell_id for parity in verdict.parities}
        count, tolerance = len(verdict.parities) + len(references), verdict.parities[0].tolerance
        yield f"The losses of the {count} cells that should learn alike agree within {share_text(tolerance)}."


def _margin(verdict: Verdict, margin: Pair, second: CellRow) -> str:
    trials = f"{verdict.row(margin.first_cell_id).trials} and {second.trials} trials"
    if verdict.finding is Finding.NO_DETECTABLE_DIFFERENCE:
        return f"It came out {saving_text(margin)} below {second.label} ({trials}): that may be noise."
    sure = "" if verdict.confidence is None else f", confidence {_confidence(verdict.confidence)}"
    return f"That is {saving_text(margin)} less than the runner-up, {second.label} ({trials}{sure})."


def _needs(verdict: Verdict) -> str:
    """In time and money, the goal's own quantity first and with its interval."""
    row = verdict.row(verdict.recommended or "")
    first = f"in {_estimate(verdict.metric, estimate_of(row, verdict.metric))}"
    if verdict.metric is not Metric.SECONDS:
        first = first.replace("in ", "for ", 1)
        return f"{first}, in {seconds_text(row.seconds.mean if row.seconds else None)}"
    return f"{first}, for {usd_text(row.usd.mean if row.usd else None)}" if row.usd else first


def _estimate(metric: Metric, found: Estimate | None) -> str:
    if found is None or found.interval is None:
        return metric_text(metric, found.mean if found else None)
    reach = range_text(metric_text(metric, found.interval.low), metric_text(metric, found.interval.high))
    return f"{metric_text(metric, found.mean)} ({found.interval.confidence:.0%} interval {reach})"


def _confidence(confidence: float) -> str:
    return "above 99.9 %" if confidence > 0.999 else share_text(confidence)


def _changes(verdict: Verdict) -> Iterator[str]:
    if verdict.finding is Finding.NO_DETECTABLE_DIFFERENCE:
        trials = verdict.trials_to_detect
        wanted = f"{trials} trials of each" if trials else "more trials than are worth running"
        yield f"A difference as small as the one seen would show with {wanted} (80 % power)."
    if verdict.finding is Finding.TOO_FEW_TRIALS:
        yield "At least two trials of each cell give an interval; three or more give a useful one."
    for found in verdict.break_evens:
        label = verdict.row(found.cell_id).label
        then, now = usd_text(found.usd_per_instance_hour), usd_text(found.now_usd_per_instance_hour)
        yield f"{label} would break even at {then}/h for {found.instance} (now {now}/h)."
    for crossing in sorted(verdict.crossovers, key=lambda crossing: -crossing.examples)[:MOST_CROSSOVERS]:
        label = verdict.row(crossing.cell_id).label
        yield f"For fewer than {count_text(crossing.examples)} examples, {label} is ahead."


def _cautions(verdict: Verdict) -> Iterator[str]:
    if verdict.is_simulated:
        yield "Some of these results are simulated: they come from a replayed or modelled trace, not from hardware."
    if verdict.metric is Metric.INSTANCE_HOURS:
        yield "No price is known; all cells use one instance type, so instance hours stand for cost."
    if verdict.recommended and may_break_limit(verdict.row(verdict.recommended), verdict.goal):
        yield "The recommended cell keeps the goal's limit by its mean, but its interval does not exclude breaking it."
    for confound in verdict.confounds:
        yield describe_confound(verdict, confound)
    for parity in verdict.parities:
        if parity.finding in (ParityFinding.DIFFERS, ParityFinding.UNDECIDED):
            yield describe_parity(verdict, parity)
    for cell_id, reason in verdict.refused.items():
        yield f"{verdict.row(cell_id).label} was measured but can't be recommended: {reason}."
    yield from _noise(verdict)


def _noise(verdict: Verdict) -> Iterator[str]:
    unsteady = [row for row in verdict.rows if row.unsteady_trials]
    if unsteady:
        trials = sum(row.unsteady_trials for row in unsteady)
        names = unsteady[0].label if len(unsteady) == 1 else f"{len(unsteady)} cells"
        yield f"{trials} {'trial' if trials == 1 else 'trials'} of {names} reached no steady state; their rates count."
    spreads = [row.samples_per_second.variation for row in verdict.rows if row.samples_per_second]
    noisy = [spread for spread in spreads if spread is not None and spread > NOISY_VARIATION]
    if noisy:
        where = "one cell" if len(noisy) == 1 else f"{len(noisy)} cells"
        yield (
            f"Trials of {where} differ by up to {share_text(max(noisy), digits=0)} (CV): look for other load on the"
            " hosts before adding trials."
        )


def describe_confound(verdict: Verdict, confound: Confound) -> str:
    names = [difference.name for difference in confound.differences]
    pair = f"{verdict.row(confound.second_cell_id).label} and {verdict.row(confound.first_cell_id).label}"
    text = f"{pair} differ in {', '.join(names[:-1])} and {names[-1]} at once"
    offered = [control for control in confound.controls if control.cell_id is None]
    if offered:
        include = ", ".join(f"{name}: {value}" for name, value in offered[0].include.items())
        return f"{text}; the control cell {{{include}}} would tell them apart."
    return f"{text}; the suite holds control cells for it." if confound.controls else f"{text}."


def describe_parity(verdict: Verdict, parity: LossParity) -> str:
    pair = f"Loss of {verdict.row(parity.cell_id).label} against {verdict.row(parity.reference_cell_id).label}"
    if parity.ratio is None:
        return f"{pair}: unknown, a loss was not logged."
    interval = f" ({parity.interval.low:.4f} to {parity.interval.high:.4f})" if parity.interval else ""
    ratio = f"ratio {parity.ratio:.4f}{interval}, tolerance {share_text(parity.tolerance)}"
    match parity.finding:
        case ParityFinding.AGREES:
            return f"{pair}: agrees, {ratio}."
        case ParityFinding.DIFFERS:
            return f"{pair}: differs, {ratio}: not the same work."
        case _:
            return f"{pair}: undecided, {ratio}."
