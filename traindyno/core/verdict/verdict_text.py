"""The verdict in plain language: a headline, its evidence, what would change it, and what limits it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    count_text,
    interval_text,
    is_end_known,
    joined,
    number_text,
    seconds_text,
    share_text,
    usd_text,
)
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.slowness.slowness_text import describe_difference, describe_parts
from traindyno.core.slowness.step_shares import explain_difference
from traindyno.core.statistics.distributions import SIGNIFICANCE
from traindyno.core.statistics.estimates import Estimate, Interval
from traindyno.core.statistics.selection import MOST_TRIALS, POWER, Relation
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.cautions import count_missing, describe_cautions
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.goal_metric import Metric
from traindyno.core.verdict.open_text import describe_open, describe_search, none_near, open_reasons_text
from traindyno.core.verdict.recommendation import Rival
from traindyno.core.verdict.verdict import SETTLED, AgainstBaseline, Finding, Verdict

MOST_CHANGES = 6
MOST_CROSSOVERS = 2
MOST_NAMES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictText:
    headline: str
    support: tuple[str, ...]
    changes: tuple[str, ...]
    cautions: tuple[str, ...]


def describe_verdict(verdict: Verdict) -> VerdictText:
    return VerdictText(
        headline=_headline(verdict) + (f" {count_missing(verdict)}." if verdict.without_result else ""),
        support=tuple(_support(verdict)),
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


def metric_text(metric: Metric, value: float | None) -> str:
    match metric:
        case Metric.SECONDS | Metric.SECONDS_TO_TARGET:
            return seconds_text(value)
        case Metric.USD | Metric.USD_TO_TARGET:
            return usd_text(value)
        case Metric.INSTANCE_HOURS:
            return f"{number_text(value)} instance hours"


def saving_interval_text(interval: Interval) -> str:
    """The interval of a ratio, as a saving; as factors if the ratio may exceed 2."""
    if not is_end_known(interval.low, interval.high):
        return UNKNOWN
    if interval.high > 2:
        return f"{number_text(interval.low)} to {number_text(interval.high)} times"
    return f"{(1 - interval.high) * 100:z.1f} to {(1 - interval.low) * 100:z.1f} %".replace("-", "−")


def saving_text(ratio: float, interval: Interval | None) -> str:
    """How much less the first needs than the second: ``11.3 % (95 % interval 8.1 to 14.4 %)``."""
    if interval is None:
        return share_text(1 - ratio)
    return f"{share_text(1 - ratio)} ({interval.confidence:.0%} interval {saving_interval_text(interval)})"


def names_text(labels: Sequence[str]) -> str:
    """The labels joined, or their number if there are many."""
    if len(labels) > MOST_NAMES:
        return f"{len(labels)} other cells"
    return joined(labels)


def _headline(verdict: Verdict) -> str:
    if verdict.recommended is None:
        if verdict.finding is Finding.UNLIKE_WORK:
            return f"No recommendation: {verdict.unlike}."
        if verdict.finding is Finding.NONE_WITHIN_LIMIT:
            return f"No measured cell qualifies as {describe_goal(verdict.goal)}."
        ended = {outcome for row in verdict.rows for outcome in row.outcomes}
        if not ended:
            return "No cell was measured: no run has ended."
        if ended <= {"completed", "cost_stopped"}:
            why = next((f": {row.message}" for row in verdict.rows if row.message), "")
            return f"No cell was measured: the runs ended before a rate could be measured{why}."
        others = ", ".join(outcome.replace("_", " ") for outcome in sorted(ended - {"completed", "cost_stopped"}))
        return f"No cell was measured: the runs ended as {others}."
    row = verdict.row(verdict.recommended)
    return f"{_answer(verdict, row)}{_reservation(verdict, row)}"


def _answer(verdict: Verdict, row: CellRow) -> str:
    goal = describe_goal(verdict.goal)
    match verdict.finding:
        case Finding.ONLY_ONE:
            return f"Use {row.label}: {none_near(verdict) or 'it is the only cell that qualifies'}."
        case Finding.TOO_FEW_TRIALS | Finding.ONE_SEED:
            return f"{row.label} was {goal}{_one_draw(verdict)}."
        case Finding.UNDECIDED:
            return _undecided(verdict, row)
        case Finding.WITHIN_TOLERANCE:
            tolerance = _tolerance(verdict)
            others = verdict.related(Relation.NOT_BETTER)
            if others:
                return (
                    f"Use {row.label}: no other cell is {_better(verdict)} by more than {tolerance}{_error(verdict)}."
                )
            labels = _labels(verdict, verdict.related(Relation.EQUIVALENT))
            verb = "is" if len(labels) == 1 else "are"
            return f"Use {row.label}; {names_text(labels)} {verb} within {tolerance}{_error(verdict)}."
        case _:
            return f"Use {row.label}: it is {goal}."


def _one_draw(verdict: Verdict) -> str:
    if verdict.finding is Finding.TOO_FEW_TRIALS:
        return ", but cells with one trial can't be compared"
    if verdict.is_simulated:
        return " in simulated runs, which do not train: real ones may give another order"
    return " for this seed; other seeds may give another order"


def _undecided(verdict: Verdict, row: CellRow) -> str:
    if verdict.is_without_interruptions:
        return (
            "No recommendation: at the observed rate of interruptions, no run of the whole work would end."
            f" Without them, {row.label} was {describe_goal(verdict.goal)}."
        )
    labels = _labels(verdict, verdict.related(Relation.OPEN, Relation.UNKNOWN))
    are_few = len(labels) < MOST_NAMES
    cells = names_text([row.label, *labels]) if are_few else f"{row.label} and {len(labels)} other cells"
    if verdict.needs_longer_trials:
        return f"{cells} can't be told apart yet{open_reasons_text(verdict)}."
    if verdict.needs_other_hosts:
        return f"{cells} can't be told apart on these hosts: trials on other hosts are needed."
    wanted = verdict.trials_to_decide or f"more than {MOST_TRIALS}"
    return f"{cells} can't be told apart yet: {wanted} trials of each would decide."


def _error(verdict: Verdict) -> str:
    """How often such claims may be wrong."""
    if verdict.is_without_interruptions:
        return ""
    return f" (wrong in at most {share_text(SIGNIFICANCE, digits=0)} of suites)"


def _reservation(verdict: Verdict, row: CellRow) -> str:
    """Caveats on the recommended cell. A settled verdict already accounts for undecided stalls, so it needs none."""
    parts = []
    if row.failed:
        diverged = f", {row.diverged} diverged" if row.diverged else ""
        parts.append(f"{row.failed} of its {row.attempted} trials failed{diverged}")
    if row.unsteady_trials and verdict.finding not in (*SETTLED, Finding.ONLY_ONE):
        parts.append(f"{row.unsteady_trials} of its {row.trials} measured trials did not reach a steady state")
    return f" Note: {'; '.join(parts)}." if parts else ""


def _support(verdict: Verdict) -> Iterator[str]:
    if verdict.recommended is None:
        return
    label = verdict.row(verdict.recommended).label
    if verdict.goal.target is None:
        yield f"{label} would do the work of {count_text(verdict.examples)} examples {_needs(verdict)}."
    else:
        yield f"{label} reaches {verdict.goal.target} {_needs(verdict)}."
    if verdict.runner_up:
        yield _margin(verdict, verdict.runner_up)
    yield from _relations(verdict)
    if verdict.against_baseline:
        yield _against_baseline(verdict, verdict.against_baseline)
    yield from _slowness(verdict)
    yield from describe_search(verdict)
    yield from _outpaced(verdict)
    yield from _accuracy(verdict)
    if verdict.parities and all(parity.finding is ParityFinding.AGREES for parity in verdict.parities):
        count = len(verdict.parities) + len({parity.reference_cell_id for parity in verdict.parities})
        tolerance = share_text(verdict.parities[0].tolerance)
        yield f"The losses of the {count} cells that should learn alike agree within {tolerance}."
    yield _contents(verdict)


def _slowness(verdict: Verdict) -> Iterator[str]:
    """Step parts of the recommended cell and the runner-up, and why one is faster if trials show it."""
    finalists = [verdict.shown_row(verdict.recommended or "")]
    finalists += [verdict.shown_row(verdict.runner_up.cell_id)] if verdict.runner_up else []
    for row in finalists:
        yield from describe_parts(row.label, row.step_parts, row.loader_advice)
    is_beaten = verdict.runner_up is not None and verdict.runner_up.relation is Relation.BEATEN
    if is_beaten:
        first, second = finalists
        difference = explain_difference(first.time, second.time, verdict.examples)
        yield from describe_difference(first.label, second.label, difference)


def _margin(verdict: Verdict, rival: Rival) -> str:
    second = verdict.row(rival.cell_id)
    trials = f"{verdict.row(verdict.recommended or '').trials} and {second.trials} trials"
    saving = saving_text(rival.comparison.ratio, rival.comparison.interval)
    if rival.relation is not Relation.BEATEN:
        return f"It was {saving} below {second.label} ({trials}). This difference may be noise{_at_look(verdict)}."
    claim = " The claim that a cell beats each other one is wrong in at most"
    wrong = "" if verdict.is_without_interruptions else f"{claim} {share_text(SIGNIFICANCE, digits=0)} of suites."
    return f"That is {saving} less than the runner-up, {second.label} ({trials}).{wrong}"


def _at_look(verdict: Verdict) -> str:
    """Why a difference may be noise although its 95 % interval excludes none."""
    if verdict.significance == SIGNIFICANCE:
        return ""
    least = share_text(verdict.significance, digits=2)
    return f"; at this look of the race, a difference counts only if chance explains it in less than {least} of suites"


def _relations(verdict: Verdict) -> Iterator[str]:
    tolerance = _tolerance(verdict)
    equivalent = _labels(verdict, verdict.related(Relation.EQUIVALENT))
    not_better = _labels(verdict, verdict.related(Relation.NOT_BETTER))
    if equivalent and not_better:
        yield f"{names_text(equivalent)} {'is' if len(equivalent) == 1 else 'are'} within {tolerance}{_error(verdict)}."
    if not_better:
        verb = "is" if len(not_better) == 1 else "are"
        not_by = f"{verb} not {_better(verdict)} by more than {tolerance}{_error(verdict)}"
        yield f"{names_text(not_better)} {not_by}, and may be worse."


def _against_baseline(verdict: Verdict, found: AgainstBaseline) -> str:
    label = verdict.row(found.cell_id).label
    saving = saving_text(found.ratio, found.interval)
    if not found.is_detected:
        return f"Against the baseline, {label}, no difference is detected: {saving} less."
    return f"Against the baseline, {label}, it needs {saving} less."


def _outpaced(verdict: Verdict) -> Iterator[str]:
    """Cells of whose first run only a bound is known."""
    behind = sorted(row.least_behind for row in verdict.rows if not row.trials and row.least_behind is not None)
    if behind:
        cells, runs = ("1 cell", "its run") if len(behind) == 1 else (f"{len(behind)} cells", "their runs")
        ends = dict.fromkeys(f"{100 * each:.0f}" for each in (behind[0], behind[-1]))
        verbs = "was" if len(behind) == 1 else "were"
        yield (
            f"{cells} {verbs} outpaced: {runs} {verbs} at least {' to '.join(ends)} % slower than another run of the"
            " job, whatever the scatter of steps and runs."
        )


def _accuracy(verdict: Verdict) -> Iterator[str]:
    own = verdict.row(verdict.recommended or "").accuracy
    if own is not None:
        others = [row.accuracy.mean for row in verdict.rows if row.accuracy and row.cell_id != verdict.recommended]
        rest = f"; the other cells reach {share_text(min(others))} to {share_text(max(others))}" if others else ""
        yield f"Its evaluation accuracy is {share_text(own.mean)}{rest}."


def _needs(verdict: Verdict) -> str:
    """The time and cost, the goal's own quantity first and with its interval."""
    is_whole = verdict.goal.target is None
    seconds = verdict.estimate(Metric.SECONDS if is_whole else Metric.SECONDS_TO_TARGET)
    usd = verdict.estimate(Metric.USD if is_whole else Metric.USD_TO_TARGET)
    own = _estimate(verdict.metric, verdict.estimate(verdict.metric), _one_run(verdict))
    if verdict.metric.is_time:
        return f"in {own}, for {usd_text(usd.mean)}" if usd else f"in {own}"
    return f"for {own}, in {seconds_text(seconds.mean) if seconds else 'an unknown time'}"


def _one_run(verdict: Verdict) -> Interval | None:
    """The prediction interval of the goal's own quantity."""
    prediction = verdict.expected.prediction if verdict.expected else None
    if prediction is None or verdict.metric not in (Metric.SECONDS, Metric.USD):
        return None
    return prediction.seconds if verdict.metric is Metric.SECONDS else prediction.usd


def _contents(verdict: Verdict) -> str:
    """What the one figure holds that headline, table and prediction name."""
    if verdict.goal.target is not None:
        return "The figure is measured from the job's creation to the target, with everything in it."
    rates = "failures and interruptions at their rates"
    if verdict.is_without_interruptions:
        rates = "failed jobs at their rate, but no interruptions"
    return (
        "The figure includes the start of a job, all time after the warm-up that the trials measured (steps, stalls,"
        f" checkpoints, evaluations, waits), and {rates}."
    )


def _estimate(metric: Metric, found: Estimate | None, one_run: Interval | None = None) -> str:
    mean = metric_text(metric, found.mean if found else None)
    parts = []
    if one_run:
        parts.append(f"one run, {share_text(one_run.confidence, digits=0)}: {_reach(metric, one_run)}")
    if found and found.interval:
        named = "mean, " if one_run else ""
        parts.append(f"{named}{found.interval.confidence:.0%} interval {_reach(metric, found.interval)}")
    return f"{mean} ({'; '.join(parts)})" if parts else mean


def _reach(metric: Metric, interval: Interval) -> str:
    return interval_text(interval.low, interval.high, lambda value: metric_text(metric, value))


def _changes(verdict: Verdict) -> Iterator[str]:
    if verdict.finding is Finding.UNLIKE_WORK:
        yield (
            "The rates of these cells can't be compared. Put `with step_log.step(...)` around each optimizer step, and"
            " count the source examples that this process trains on in it: samples=..., or a batch whose first"
            " dimension they are."
        )
    if verdict.finding is Finding.UNDECIDED and verdict.trials_to_decide and not verdict.is_without_interruptions:
        run = verdict.row(verdict.recommended or "").trials
        yield (
            f"A suite of these cells with {verdict.trials_to_decide} trials of each ({run} were run) settles it with a"
            f" probability of {share_text(POWER, digits=0)}."
        )
    yield from describe_open(verdict)
    if verdict.finding is Finding.ONE_SEED and not verdict.is_simulated:
        yield (
            "If each trial trains with a seed of its own, the trials show what depends on it: see"
            " measurement.seed_argument."
        )
    if verdict.finding is Finding.TOO_FEW_TRIALS:
        yield "Two trials of each cell give an interval; five give a useful one."
    for found in verdict.break_evens:
        label = verdict.row(found.cell_id).label
        then, now = usd_text(found.usd_per_instance_hour), usd_text(found.now_usd_per_instance_hour)
        yield f"{label} would break even at {then}/h for {found.instance} (now {now}/h)."
    for crossing in sorted(verdict.crossovers, key=lambda crossing: -crossing.examples)[:MOST_CROSSOVERS]:
        label = verdict.row(crossing.cell_id).label
        yield f"For fewer than {count_text(crossing.examples)} examples, {label} is {_better(verdict)}."


def _labels(verdict: Verdict, rivals: Sequence[Rival]) -> list[str]:
    return [verdict.row(rival.cell_id).label for rival in rivals]


def _better(verdict: Verdict) -> str:
    return "faster" if verdict.metric.is_time else "cheaper"


def _tolerance(verdict: Verdict) -> str:
    return f"{verdict.tolerance * 100:g} %"
