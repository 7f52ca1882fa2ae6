"""Warnings for the reader of a verdict."""

from collections.abc import Iterator

from traindyno.core.costs.hazard import UnevenFaults
from traindyno.core.costs.quantity_text import share_text
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.suite.choices import Purchase
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.confounds import Confound
from traindyno.core.verdict.goal_metric import Metric
from traindyno.core.verdict.open_text import merge_reasons
from traindyno.core.verdict.verdict import Finding, Verdict

# Identical runs on one machine differ by 1 to 5 %; a spread above 10 % has another cause.
NOISY_VARIATION = 0.1
MOST_MISSING = 5
COMPARED = (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE, Finding.UNDECIDED)


def describe_cautions(verdict: Verdict) -> Iterator[str]:
    if verdict.is_simulated:
        yield "Some of these results are simulated: they come from a replayed or modelled trace, not from hardware."
    if verdict.without_result:
        yield describe_missing(verdict)
    if verdict.metric is Metric.INSTANCE_HOURS:
        yield "No price is known. All cells use one instance type, so they are compared by instance hours."
    yield from _interruptions(verdict)
    for row in verdict.rows:
        if row.reduced_batches:
            yield (
                f"{row.label} ran out of memory, and its script reduced the batch: {', '.join(row.reduced_batches)}."
                " Only the steps with the last batch count."
            )
    yield from _failures(verdict)
    yield from _hosts(verdict)
    yield from _seeds(verdict)
    for confound in verdict.confounds:
        yield describe_confound(verdict, confound)
    yield from _losses(verdict)
    for cell_id, reason in verdict.refused.items():
        if reason == verdict.unlike:
            continue  # the headline says so
        yield f"{verdict.row(cell_id).label} was measured but can't be recommended: {reason}."
    for row in verdict.rows:
        if row.message and row.outcomes.keys() <= {"completed", "cost_stopped"}:
            yield f"A trial of {row.label}: {row.message}."
    yield from _noise(verdict)


def describe_missing(verdict: Verdict) -> str:
    missing = verdict.without_result
    named = ", ".join(missing[:MOST_MISSING]) + (", …" if len(missing) > MOST_MISSING else "")
    return (
        f"{count_missing(verdict)}: {named}. The verdict does not count them, but the receipt has the costs of their"
        " jobs. The log of the function RecordRun says why."
    )


def count_missing(verdict: Verdict) -> str:
    missing = len(verdict.without_result)
    return f"{missing} of {verdict.planned_runs} runs {'has' if missing == 1 else 'have'} no result"


def _failures(verdict: Verdict) -> Iterator[str]:
    for row in verdict.rows:
        if row.failed and row.cell_id != verdict.recommended:
            diverged = f", {row.diverged} of them with a loss that is not finite" if row.diverged else ""
            yield f"{row.failed} of {row.attempted} trials of {row.label} failed{diverged}."
    if any(row.failed and row.trials for row in verdict.rows):
        yield "The time and cost of cells with failed trials are divided by their own success rate."
    for row in verdict.rows:
        if row.trials and row.uneven_faults is not None:
            yield (
                f"{describe_uneven_faults(row, row.uneven_faults)}. The cell may cause them, and lost trials may"
                " have been slow ones: the answer holds only if it holds for faults of its own, too."
            )


def describe_uneven_faults(row: CellRow, found: UnevenFaults) -> str:
    return (
        f"{row.label} had {found.count} of the {found.all_count} faults of the service on {row.instance} in"
        f" {share_text(found.hours_share, digits=0)} of the measured hours"
    )


def _interruptions(verdict: Verdict) -> Iterator[str]:
    """Cautions on capacity that failed in the runs, or that fails often by the stated rate."""
    if any(row.is_without_interruptions for row in verdict.rows):
        yield (
            "Time and cost are without interruptions: at the observed rate no run of the whole work would end. "
            "workload.full_run.checkpoint_every_minutes states how often it writes checkpoints."
        )
        return
    hazards = {row.hazard.key: row.hazard for row in verdict.rows if row.trials and row.hazard is not None}
    for (instance, purchase), hazard in sorted(hazards.items()):
        if hazard.count or purchase == Purchase.SPOT:
            yield (
                f"Time and cost include {hazard.per_instance_hour:.2g} interruptions and service faults per"
                f" instance-hour of {instance} ({purchase.replace('-', ' ')}): {hazard.basis}."
            )


def _hosts(verdict: Verdict) -> Iterator[str]:
    """What the comparison says about instance types, and what it says only about the hosts used."""
    if verdict.recommended is None or verdict.finding not in COMPARED:
        return
    rows = [verdict.row(verdict.recommended), *(verdict.row(rival.cell_id) for rival in verdict.rivals)]
    known = [row.host_draws for row in rows if row.host_draws is not None]
    if len(known) < len(rows):
        yield "The hosts of some trials are unknown. Each of these trials counts as a new draw of hosts."
    if known and min(known) < 2:
        yield (
            "Some cells ran on one set of hosts only. The answer and its intervals hold for these hosts; others may"
            " differ."
        )
    if any(rival.is_across_hosts for rival in verdict.rivals):
        spread = verdict.host_spread
        yield (
            "Cells ran on different hosts, one set each. A spread between hosts of"
            f" {share_text(spread.deviation)} is assumed ({spread.source})."
        )


def _losses(verdict: Verdict) -> Iterator[str]:
    dropped = set(verdict.dropped)
    for parity in verdict.parities:
        is_expected = parity.finding is ParityFinding.ONE_TRIAL and parity.cell_id in dropped
        is_near = parity.finding is ParityFinding.ONE_SEED and _is_within_tolerance(parity)
        if parity.finding not in (ParityFinding.AGREES, ParityFinding.UNKNOWN) and not is_expected and not is_near:
            yield describe_parity(verdict, parity)
    unknown: dict[str, list[str]] = {}
    for parity in verdict.parities:
        if parity.finding is ParityFinding.UNKNOWN:
            unknown.setdefault(parity.reference_cell_id, []).append(verdict.row(parity.cell_id).label)
    for reference, labels in unknown.items():
        named = ", ".join(labels[:MOST_MISSING]) + (", …" if len(labels) > MOST_MISSING else "")
        yield (
            f"The loss of {named} can't be compared with that of {verdict.row(reference).label}: a loss was not logged."
            " Whether these cells did the same work is unknown."
        )


def _is_within_tolerance(parity: LossParity) -> bool:
    return parity.ratio is not None and 1 / (1 + parity.tolerance) <= parity.ratio <= 1 + parity.tolerance


def _seeds(verdict: Verdict) -> Iterator[str]:
    """Which results hold for one seed. Time and cost of the whole work do not depend on it."""
    repeating = [row.label for row in verdict.rows if row.repeats_a_seed]
    is_quality = verdict.metric.is_to_target
    if repeating and (is_quality or any(each.finding is ParityFinding.ONE_SEED for each in verdict.parities)):
        who = repeating[0] if len(repeating) == 1 else f"{len(repeating)} cells"
        what = "The time and cost to the target" if is_quality else "The comparisons of losses"
        if verdict.is_simulated:
            yield f"Simulated runs do not train. {what} say nothing of other seeds."
            return
        yield (
            f"Trials of {who} share a seed, or do not show their seed. {what} hold for this seed, and nothing is"
            " concluded for other seeds."
        )


def _noise(verdict: Verdict) -> Iterator[str]:
    unsteady = [row for row in verdict.rows if row.unsteady_trials]
    if unsteady:
        trials = sum(row.unsteady_trials for row in unsteady)
        names = unsteady[0].label if len(unsteady) == 1 else f"{len(unsteady)} cells"
        verb = "1 trial" if trials == 1 else f"{trials} trials"
        included = "it is included" if trials == 1 else "they are included"
        yield f"{verb} of {names} did not reach a steady state; {included}.{_reasons(unsteady)}"
    contended = [row for row in verdict.rows if row.contended_trials]
    if contended:
        names = ", ".join(row.label for row in contended)
        most = max(row.others_cpu_share or 0.0 for row in contended)
        yield (
            f"Other work used up to {share_text(most, digits=0)} of the CPU time of the hosts in trials of {names}: it"
            " may have slowed them down, and the intervals include how much their times differ."
        )
    if verdict.serial_correlation:
        yield (
            "Trials are correlated with the previous trial (correlation"
            f" {verdict.serial_correlation:.1f}); the intervals include this."
        )
    spreads = [row.samples_per_second.variation for row in verdict.rows if row.samples_per_second]
    noisy = [spread for spread in spreads if spread is not None and spread > NOISY_VARIATION]
    if noisy:
        where = "one cell" if len(noisy) == 1 else f"{len(noisy)} cells"
        yield (
            f"Trials of {where} differ by up to {share_text(max(noisy), digits=0)} (CV): look for other load on the"
            " hosts before you add trials."
        )


def _reasons(rows: list[CellRow]) -> str:
    reasons = merge_reasons(reason for row in rows for reason in row.unsteady_reasons)
    return f" Reason: {'; '.join(reasons)}." if reasons else ""


def describe_confound(verdict: Verdict, confound: Confound) -> str:
    names = [difference.name for difference in confound.differences]
    pair = f"{verdict.row(confound.second_cell_id).label} and {verdict.row(confound.first_cell_id).label}"
    text = f"{pair} differ in {', '.join(names[:-1])} and {names[-1]}"
    offered = [control for control in confound.controls if control.cell_id is None]
    if offered:
        include = ", ".join(f"{name}: {value}" for name, value in offered[0].include.items())
        return f"{text}; the control cell {{{include}}} would separate the effects."
    return f"{text}; the suite has control cells for it." if confound.controls else f"{text}."


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
        case ParityFinding.ONE_SEED:
            return f"{pair}: for this seed, {ratio}; unknown for other seeds."
        case ParityFinding.ONE_TRIAL:
            return f"{pair}: unknown with one trial, {ratio}."
        case _:
            return f"{pair}: undecided, {ratio}."
