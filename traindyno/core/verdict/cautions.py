"""Warnings for the reader of a verdict."""

from collections.abc import Iterator, Sequence

from traindyno.core.costs.quantity_text import share_text
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.suite.choices import Purchase
from traindyno.core.verdict.cell_row import CellQuality, CellRow
from traindyno.core.verdict.conditions import Confound
from traindyno.core.verdict.found_batch import CellBatch
from traindyno.core.verdict.trained_weights import CellWeights
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.figures.table import TO_TARGET, FigureColumn

# Identical runs on one machine differ by 1 to 5 %; a spread above 10 % has another cause.
NOISY_VARIATION = 0.1
MOST_MISSING = 5
COMPARED = (Finding.RECOMMENDED, Finding.WITHIN_TOLERANCE, Finding.UNDECIDED)


def describe_cautions(verdict: Verdict) -> Iterator[str]:
    for part in (_of_results, _of_hosts, _of_seeds, _of_trials):
        yield from part(verdict)
    measured = [row.hosts.hazard for row in verdict.rows if row.trials]
    hazards = {hazard.key: hazard for hazard in measured if hazard is not None}
    for (instance, purchase), hazard in sorted(hazards.items()):
        if hazard.count or purchase == Purchase.SPOT:
            yield (
                f"Time and cost include {hazard.per_instance_hour:.2g} interruptions and service "
                f"faults per instance-hour of {instance} ({purchase.replace('-', ' ')}): "
                f"{hazard.basis}."
            )
    for row in verdict.rows:
        yield from _of_cell(verdict, row)
    weights = {row.label: row.part(CellWeights) for row in verdict.rows}
    texts = {str(trained) for trained in weights.values()}
    if len(texts) > 1 and any(cell.trained is not None for cell in weights.values()):
        parts = "; ".join(f"{label} trains {trained}" for label, trained in weights.items())
        yield f"The cells do not train the same weights: {parts}."
    for confound in verdict.likeness.confounds:
        yield describe_confound(verdict, confound)
    yield from _losses(verdict)


def _of_results(verdict: Verdict) -> Iterator[str]:
    if verdict.is_simulated:
        yield "Some of these results are simulated: replayed or modelled, and not from hardware."
    if verdict.missing.run_ids:
        yield (
            f"{count_missing(verdict)}: {_first(verdict.missing.run_ids)}. The verdict does not "
            "count them, but the receipt has the costs of their jobs. Either they had not "
            "started when the execution ended, or they could not be recorded: then the log of "
            "the function RecordRun says why."
        )
    if verdict.metric is FigureColumn.INSTANCE_HOURS:
        yield (
            "No cost is known. All cells use one instance type, so they are compared by "
            "instance hours."
        )


def _of_hosts(verdict: Verdict) -> Iterator[str]:
    best = verdict.best
    if best is None or verdict.finding not in COMPARED:
        return
    compared = {best.cell_id, *(rival.cell_id for rival in verdict.rivals)}
    rows = [row for row in verdict.rows if row.cell_id in compared]
    draws = [row.hosts.draws for row in rows]
    if None in draws:
        yield (
            "The hosts of some trials are unknown. Each of these trials counts as a new draw of "
            "hosts."
        )
    if any(draw is not None and draw < 2 for draw in draws):
        is_set = any(row.hosts.draws == 1 and row.instance_count > 1 for row in rows)
        only = "one set of machines only; others" if is_set else "one machine only; another"
        yield f"Some cells were measured on {only} may differ by more than the intervals say."
    if any(rival.is_across_hosts for rival in verdict.rivals):
        spread = best.hosts.spread
        yield (
            "Cells ran on different hosts, one set each. A spread between hosts of"
            f" {share_text(spread.deviation)} is assumed ({spread.source})."
        )


def _of_seeds(verdict: Verdict) -> Iterator[str]:
    is_quality = verdict.metric in TO_TARGET
    repeating = [row.label for row in verdict.rows if row.part(CellQuality).repeats_a_seed]
    one_seed = is_quality or any(
        parity.finding is ParityFinding.ONE_SEED for parity in verdict.likeness.parities
    )
    if not repeating or not one_seed:
        return
    what = "The time and cost to the target" if is_quality else "The comparisons of losses"
    if verdict.is_simulated:
        yield f"Simulated runs do not train. {what} say nothing of other seeds."
    else:
        yield (
            f"Trials of {_first(repeating)} share a seed, or do not show their seed. {what} hold "
            "for this seed, and nothing is concluded for other seeds."
        )


def _of_trials(verdict: Verdict) -> Iterator[str]:
    rows = verdict.rows
    if any(row.failed and row.trials for row in rows):
        yield "The time and cost of cells with failed trials are divided by their own success rate."
    busy = {
        row.label: row.hosts.others_cpu_share
        for row in rows
        if row.hosts.others_cpu_share is not None
    }
    if busy:
        yield (
            f"Other work used up to {share_text(max(busy.values()), digits=0)} of the CPU time of "
            f"the hosts in trials of {', '.join(busy)}: it may have slowed them down, and the "
            "intervals include how much their times differ."
        )
    rates = [row.samples_per_second for row in rows if row.samples_per_second]
    variation = max((rate.variation or 0.0 for rate in rates), default=0.0)
    if variation > NOISY_VARIATION:
        yield (
            f"Trials of a cell differ by up to {share_text(variation, digits=0)} (CV): look for "
            "other load on the hosts before you add trials."
        )


def _of_cell(verdict: Verdict, row: CellRow) -> Iterator[str]:
    reduced = row.part(CellBatch).reduced
    if reduced:
        yield (
            f"{row.label} ran out of memory, and its script reduced the batch: "
            f"{', '.join(reduced)}. Only the steps with the last batch count."
        )
    if row.failed and row.cell_id != verdict.recommended:
        diverged = (
            f", {row.diverged} of them with a loss that is not finite" if row.diverged else ""
        )
        yield f"{row.failed} of {row.attempted} trials of {row.label} failed{diverged}."
    faults = row.hosts.uneven_faults
    if row.trials and faults is not None:
        yield (
            f"{row.label} had {faults.count} of the {faults.all_count} faults of the service on "
            f"{row.instance} in {share_text(faults.hours_share, digits=0)} of the measured hours. "
            "The cell may cause them, and lost trials may have been slow ones: the answer holds "
            "only if it holds for faults of its own, too."
        )
    refused = verdict.refused.get(row.cell_id)
    if refused not in (None, verdict.likeness.unlike):
        yield f"{row.label} was measured but can't be recommended: {refused}."
    if row.message and row.outcomes.keys() <= {"completed", "cost_stopped"}:
        yield f"A trial of {row.label}: {row.message}."


def count_missing(verdict: Verdict) -> str:
    missing = len(verdict.missing.run_ids)
    return (
        f"{missing} of {verdict.missing.planned} runs {'has' if missing == 1 else 'have'} no result"
    )


def _first(names: Sequence[str]) -> str:
    return ", ".join(names[:MOST_MISSING]) + (", …" if len(names) > MOST_MISSING else "")


def _losses(verdict: Verdict) -> Iterator[str]:
    unknown: dict[str, list[str]] = {}
    for parity in verdict.likeness.parities:
        # one trial of a dropped cell, and one seed within the tolerance, need no warning
        is_near = (
            parity.ratio is not None
            and 1 / (1 + parity.tolerance) <= parity.ratio <= 1 + parity.tolerance
        )
        match parity.finding:
            case ParityFinding.UNKNOWN:
                unknown.setdefault(parity.reference_cell_id, []).append(
                    verdict.row(parity.cell_id).label
                )
            case ParityFinding.DIFFERS | ParityFinding.UNDECIDED:
                yield describe_parity(verdict, parity)
            case ParityFinding.ONE_TRIAL if parity.cell_id not in verdict.dropped:
                yield describe_parity(verdict, parity)
            case ParityFinding.ONE_SEED if not is_near:
                yield describe_parity(verdict, parity)
    for reference, labels in unknown.items():
        yield (
            f"The loss of {_first(labels)} can't be compared with that of "
            f"{verdict.row(reference).label}: a loss was not logged. Whether these cells did the "
            "same work is unknown."
        )


def describe_confound(verdict: Verdict, confound: Confound) -> str:
    names = [difference.name for difference in confound.differences]
    pair = (
        f"{verdict.row(confound.second_cell_id).label} and "
        f"{verdict.row(confound.first_cell_id).label}"
    )
    return f"{pair} differ in {', '.join(names[:-1])} and {names[-1]}."


def describe_parity(verdict: Verdict, parity: LossParity) -> str:
    pair = (
        f"Loss of {verdict.row(parity.cell_id).label} against "
        f"{verdict.row(parity.reference_cell_id).label}"
    )
    if parity.ratio is None:
        return f"{pair}: unknown, a loss was not logged."
    interval = (
        f" ({parity.interval.low:.4f} to {parity.interval.high:.4f})" if parity.interval else ""
    )
    ratio = f"ratio {parity.ratio:.4f}{interval}, tolerance {share_text(parity.tolerance)}"
    return {
        ParityFinding.AGREES: f"{pair}: agrees, {ratio}.",
        ParityFinding.DIFFERS: f"{pair}: differs, {ratio}: not the same work.",
        ParityFinding.ONE_SEED: f"{pair}: for this seed, {ratio}; unknown for other seeds.",
        ParityFinding.ONE_TRIAL: f"{pair}: unknown with one trial, {ratio}.",
    }.get(parity.finding, f"{pair}: undecided, {ratio}.")
