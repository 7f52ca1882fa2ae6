"""Why cells of a suite can't be compared: one counts other work, ignores its batch size, or does
not log all steps.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, combinations, permutations
from math import log, prod
from statistics import fmean

from traindyno.core.costs.quantity_text import joined
from traindyno.core.documents.plain import plain_values
from traindyno.core.run.processes import world_size
from traindyno.core.run.workload import Workload
from traindyno.core.step_log.line import ROW_VALUES
from traindyno.core.suite.arguments import arguments_of, number_of
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Task
from traindyno.core.verdict.cell_runs import CellRuns

#: Samples per step vary with a batch size if the logarithm of their ratio is at least this share of
#: the batch sizes'. Batches up to a number of tokens, and short last ones, vary less than the batch
#: size does.
LEAST_SHARE = 0.25

_BATCH_SIZE = re.compile(
    r"(^|_)(batch_?size|bsz?|mbs|gbs|(mini|micro|train|global|total|local|device|effective|target)_?batch|batch_per"
    r"|(ims|imgs|images|samples|examples|sentences|rows|sequences|seqs)_per_(batch|device|gpu|step))(_|$)|^batch$"
)
#: Words in the names of arguments that are no batch size of a training step.
_OTHER = re.compile(
    r"(^|_)(eval|evaluation|val|valid|validation|test|testing|dev|infer|inference|predict|prediction|generation|dataset"
    r"|map|preprocess|preprocessing|tokenizer?|writer|tokens?|norm|num|n|count|accum|accumulation|warmup|rampup|schedule"
    r"|factor|multiplier|max|min|finder|auto)(_|$)"
)
_ACCUMULATION = re.compile(r"accum|(^|_)(grad_acc|ga|gas)(_|$)|(num|n)_micro_?batch")
_WHOLE = re.compile(r"(^|_)(global|total|effective|target|gbs)(_|$)")
_PART = re.compile(r"(^|_)(micro|microbatch|mbs|device|gpu|rank|replica|local|worker|per)(_|$)")
_MICRO = re.compile(r"(^|_)(micro|microbatch|mbs)(_|$)|^device_")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlikeWork:
    """Cells that can't be compared, with the reason as a part of the headline's sentence."""

    reason: str
    cell_ids: frozenset[str]


def find_unlike_work(trials: Sequence[CellRuns], workload: Workload) -> UnlikeWork | None:
    """None if all cells count the same work.

    Runs that were outpaced count too: a wrong count may be why.
    """
    return (
        _unknown(trials)
        or _other_units(trials, workload)
        or _parts_of_rows(trials, workload)
        or _ignored_batch_size(trials, workload)
    )


def _unknown(trials: Sequence[CellRuns]) -> UnlikeWork | None:
    """A cell of which no run has a rate: whether it is faster is unknown."""
    for runs in trials:
        unknown = [
            run.measured.unknown_work
            for run in runs.others
            if run.measured and run.measured.unknown_work
        ]
        if unknown and not runs.measured:
            return UnlikeWork(
                reason=f"{runs.cell.label} {unknown[0]}, so its rate is unknown",
                cell_ids=frozenset({runs.key}),
            )
    return None


def _other_units(trials: Sequence[CellRuns], workload: Workload) -> UnlikeWork | None:
    units: dict[str, list[Cell]] = {}
    for runs in trials:
        known = (*runs.measured, *(result for result in runs.outpaced if result.environment))
        for unit in {result.work_unit for result in known}:
            units.setdefault(unit, []).append(runs.cell)
    if len(units) < 2:
        return None
    names = _that_differ(list(units.values()), workload)
    counts = (
        f"{joined(names)} count{'' if len(names) > 1 else 's'} other work"
        if names
        else "cells count other work"
    )
    return UnlikeWork(
        reason=f"{counts} ({joined(sorted(units))})",
        cell_ids=frozenset(cell.cell_id for cells in units.values() for cell in cells),
    )


def _that_differ(groups: Sequence[Sequence[Cell]], workload: Workload) -> list[str]:
    """The settings and arguments of which no two groups have a value in common."""
    points = [
        [{**plain_values(cell.settings), **arguments_of(cell, workload)} for cell in cells]
        for cells in groups
    ]

    def is_apart(name: str) -> bool:
        values = [{repr(point.get(name)) for point in group} for group in points]
        return all(not one & other for one, other in combinations(values, 2))

    names = dict.fromkeys(name for point in chain.from_iterable(points) for name in point)
    return [name for name in names if is_apart(name)]


def _parts_of_rows(trials: Sequence[CellRuns], workload: Workload) -> UnlikeWork | None:
    """A cell whose rows have a half, a third … of another's values, where as many of its processes
    may have the parts of the same rows, and no argument asks for shorter rows.
    """
    known = [(runs.cell, of) for runs in trials if (of := _row_values(runs)) is not None]
    for (cell, (processes, values)), (other, (_, whole)) in permutations(known, 2):
        parts = _times(whole, values)
        if parts is None or processes % parts or _is_asked(cell, other, parts, workload):
            continue
        reason = (
            f"a row has {values[0]:,} values in {cell.label} and {whole[0]:,} in {other.label}: if "
            f"{parts} processes train on parts of the same rows, say shared_by={parts} in "
            "step_log.step(...) or StepLogCallback(...), else shared_by=1"
        )
        return UnlikeWork(reason=reason, cell_ids=frozenset({cell.cell_id, other.cell_id}))
    return None


def _row_values(trials: CellRuns) -> tuple[int, list[int]] | None:
    """The processes of a run that says how large its first rows were, and the sizes."""
    for result in (*trials.measured, *trials.outpaced):
        sizes = result.facts.get(ROW_VALUES)
        if result.environment and isinstance(sizes, list):
            return result.environment.world_size, sizes
    return None


def _times(whole: Sequence[int], values: Sequence[int]) -> int | None:
    """How many times as many ``whole`` are, in each batch; None if not the same number of times, at
    least twice.
    """
    ratios = {Fraction(*pair) for pair in zip(whole, values, strict=True) if pair[1]}
    ratio = ratios.pop() if len(ratios) == 1 else Fraction(1)
    return int(ratio) if ratio > 1 and ratio.denominator == 1 else None


def _is_asked(cell: Cell, other: Cell, parts: int, workload: Workload) -> bool:
    """Whether an argument is as many times smaller, as a length of rows is."""
    own, others = (arguments_of(asked, workload) for asked in (cell, other))
    numbers = [(number_of(own[name]), number_of(others[name])) for name in own.keys() & others]
    return any(one and two and two == parts * one for one, two in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Steps:
    """The steps of a cell, by its arguments and as measured.

    ``sizes`` are the arguments that may be a batch size, ``factors`` what else multiplies the
    samples of a step. ``samples`` and ``most_samples`` are the mean and the most of a step of all
    processes.
    """

    cell_id: str
    sizes: Mapping[str, float]
    factors: Mapping[str, float]
    samples: float
    most_samples: float


def _ignored_batch_size(trials: Sequence[CellRuns], workload: Workload) -> UnlikeWork | None:
    """The first argument whose name is that of a batch size, and that the samples per step do not
    vary with.
    """
    if workload.task is not Task.SCRIPT:
        return None
    known = [steps for runs in trials if (steps := _steps_of(runs, workload)) is not None]
    for name in dict.fromkeys(name for cell in known for name in cell.sizes):
        having = [cell for cell in known if name in cell.sizes]
        pairs = [pair for pair in combinations(having, 2) if _is_ignored(name, *pair)]
        if pairs:
            ignoring = {cell.cell_id: cell for pair in pairs for cell in pair}
            sizes = [cell.sizes[name] for cell in ignoring.values()]
            samples = sorted(cell.samples for cell in ignoring.values())
            count = len(ignoring)
            least, most = (
                f"{count:,.0f}" if count >= 100 else f"{count:.3g}"
                for count in (samples[0], samples[-1])
            )
            are = (
                f"{least} in {'both' if count == 2 else f'all {count}'}"
                if least == most
                else f"{least} to {most}"
            )
            reason = (
                f"{name} varies from {min(sizes):,.0f} to {max(sizes):,.0f}, samples per step are "
                f"{are}"
            )
            return UnlikeWork(reason=reason, cell_ids=frozenset(ignoring))
    return None


def _steps_of(trials: CellRuns, workload: Workload) -> _Steps | None:
    results = (*trials.measured, *trials.outpaced)
    rates = [result.throughput for result in results if result.throughput]
    if not rates:
        return None
    numbers_of = {
        name: number_of(value) for name, value in arguments_of(trials.cell, workload).items()
    }
    numbers = {
        name: number for name, number in numbers_of.items() if number is not None and number > 0
    }
    processes = max(
        (result.environment.world_size for result in results if result.environment), default=1
    )
    processes = max(processes, world_size(trials.cell.settings) or 1)
    factors = {
        name: number for name, number in numbers.items() if _ACCUMULATION.search(_plain(name))
    }
    return _Steps(
        cell_id=trials.key,
        sizes={
            name: number
            for name, number in numbers.items()
            if name not in factors and _is_size(name, number)
        },
        factors={**factors, "processes": float(processes)},
        samples=fmean(rate.samples / rate.steps for rate in rates),
        most_samples=max(rate.most_samples_per_step for rate in rates),
    )


def _is_ignored(name: str, one: _Steps, other: _Steps) -> bool:
    """Whether neither the mean nor the largest step varies with the argument, and nothing makes up
    for it.

    A smaller batch may be made up for by more accumulated batches or processes; a script may have
    done so for some of them only, so that any of their products may be the ratio of the samples.
    """
    if one.sizes[name] == other.sizes[name]:
        return False
    multipliers = [{**cell.factors, **cell.sizes} for cell in (one, other)]
    ratios = [
        multipliers[1][argument] / multipliers[0][argument]
        for argument in multipliers[0].keys() & multipliers[1].keys() - {name}
        if multipliers[1][argument] != multipliers[0][argument]
    ]
    expected = [
        other.sizes[name] / one.sizes[name] * prod(chosen)
        for count in range(len(ratios) + 1)
        for chosen in combinations(ratios, count)
    ]
    growth = (other.samples / one.samples, other.most_samples / one.most_samples)
    return not any(_varies(ratio, by) for ratio in growth for by in expected) and not _is_divided(
        name, one, other
    )


def _varies(ratio: float, by: float) -> bool:
    if abs(log(by)) < 1e-9:
        return abs(log(ratio)) < log(1.05)
    return log(ratio) / log(by) >= LEAST_SHARE


def _is_divided(name: str, one: _Steps, other: _Steps) -> bool:
    """Whether it may be the part of a fixed batch that fits into memory: the script accumulates as
    many as it needs.
    """
    if any(cell.most_samples % cell.sizes[name] for cell in (one, other)):
        return False
    own = _plain(name)
    fixed = [
        argument
        for argument in one.sizes.keys() & other.sizes.keys() - {name}
        if one.sizes[argument] == other.sizes[argument]
    ]
    return bool(_MICRO.search(own)) or any(
        _PART.search(own) or _WHOLE.search(_plain(argument)) for argument in fixed
    )


def _is_size(name: str, number: float) -> bool:
    plain = _plain(name)
    return number.is_integer() and bool(_BATCH_SIZE.search(plain)) and not _OTHER.search(plain)


def _plain(name: str) -> str:
    """The name in lower case with underscores: ``trainBatch-Size`` as train_batch_size."""
    return re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip(
        "_"
    )
