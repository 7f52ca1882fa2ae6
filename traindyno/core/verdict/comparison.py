"""Two executions of the same work side by side: what changed, by how much, and what else
differs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from traindyno.core.costs.hazard import observe_hazards
from traindyno.core.costs.quantity_text import exact_usd_text
from traindyno.core.errors import TraindynoError
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.measurement.loss_parity import LossParity, check_loss_parities
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import PLACE, ROW_VALUES, SHARED_JOB
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import suite_document
from traindyno.core.verdict.build_row import build_row
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.cell_runs import CellRuns, group_runs
from traindyno.core.verdict.conditions import Difference
from traindyno.core.verdict.figure_table import build_figures
from traindyno.figures.distributions import SIGNIFICANCE, adjust_by_holm
from traindyno.figures.estimates import Comparison
from traindyno.figures.hosts import HostPriors, HostSpread
from traindyno.figures.in_job.run_scatter import KNOWN_DEGREES
from traindyno.figures.model import correlated, fit_model
from traindyno.figures.table import FigureColumn, Figures

# These fields of a workload say how the work is done; two executions that differ in them can be
# compared.
MEANS = ("source", "entry_point", "image", "environment")
RUNNING = ("measurement", "purchase")
NONE = "none"
# How far this machine's level differs between executions, in standard deviations of single runs;
# assumed.
LEVELS_APART = 2.0
LONGEST_VALUE = 60  # a model's configuration or a list of columns is no line
# Facts that differ between runs of one cell
OF_A_RUN = (f"{SHARED_JOB}.{PLACE}", ROW_VALUES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRecord:
    execution_id: str
    suite: Suite
    cells: tuple[Cell, ...]
    results: tuple[RunResult, ...]
    host_priors: HostPriors | None = None


def _work_and_running(suite: Suite) -> tuple[dict[str, str], dict[str, str]]:
    """What the suite's runs do, and how they are run: script, image, measurement, purchase."""
    document = suite_document(suite)
    work = document.pop("workload")
    means = {name: work.pop(name) for name in MEANS if name in work}
    running = {name: document[name] for name in RUNNING if name in document}
    return _flat({"workload": work}), _flat({"workload": means, **running})


def _environment(results: Sequence[RunResult]) -> dict[str, str]:
    """Versions, devices, hosts, images and prices: all values that any run reported, by name."""
    values: dict[str, set[str]] = {}
    for result in results:
        for name, value in _facts(result):
            values.setdefault(name, set()).add(value)
    return {name: ", ".join(sorted(reported)) for name, reported in values.items()}


def _facts(result: RunResult) -> Iterator[tuple[str, str]]:
    if result.environment:
        facts = _flat(result.environment.facts)
        yield from ((name, value) for name, value in facts.items() if name not in OF_A_RUN)
        yield "hosts", ", ".join(result.environment.hosts)
    images = {attempt.image_uri for attempt in result.attempts if attempt.image_uri}
    yield from (("image", image) for image in sorted(images))
    if result.price.usd_per_instance_hour is not None:
        price = f"{exact_usd_text(result.price.usd_per_instance_hour)}/h"
        yield f"price of {result.run.cell.settings.instance}", price


def _flat(document: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{name}.")
        elif value is not None:
            flat[f"{prefix}{name}"] = str(value)
    return flat


def _differences(first: Mapping[str, str], second: Mapping[str, str]) -> tuple[Difference, ...]:
    pairs = {name: (first.get(name, NONE), second.get(name, NONE)) for name in (*first, *second)}
    return tuple(
        Difference(name=name, first=one, second=other)
        for name, (one, other) in pairs.items()
        if one != other
    )


class NotComparable(TraindynoError):
    """The two executions are one, did not do the same work, or have no cell in common."""


class Change(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    NO_DETECTABLE_DIFFERENCE = "no_detectable_difference"
    TOO_FEW_TRIALS = "too_few_trials"
    NOT_MEASURED = "not_measured"


@dataclass(frozen=True, slots=True, kw_only=True)
class CellChange:
    """Comparisons are second ÷ first; ``change`` is the rate's, all cells taken together (Holm).

    ``jobs``: that measured it, of the execution that has fewer; None on this machine, whose level
    all jobs of an execution share.
    """

    label: str
    first: CellRow
    second: CellRow
    rate: Comparison | None
    seconds: Comparison | None
    usd: Comparison | None
    parity: LossParity | None
    change: Change
    jobs: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionComparison:
    """How two executions of the same work differ, cell by cell.

    ``only_first`` and ``only_second`` are labels of cells that only one of them has. ``is_race``:
    the first dropped cells after one run.
    """

    first_id: str
    second_id: str
    is_race: bool
    examples: int
    cells: tuple[CellChange, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    running: tuple[Difference, ...]
    environment: tuple[Difference, ...]
    is_simulated: bool


def compare_executions(first: ExecutionRecord, second: ExecutionRecord) -> ExecutionComparison:
    """Raises NotComparable if the executions are one, did not do the same work or share no cell."""
    both = (first, second)
    if first.execution_id == second.execution_id:
        raise NotComparable(f"{first.execution_id} is named twice, expected two executions")
    (work, running), (other_work, other_running) = (
        _work_and_running(record.suite) for record in both
    )
    unlike = _differences(work, other_work)
    if unlike:
        lines = [
            f"{difference.name}: {_cut(difference.first)} → {_cut(difference.second)}"
            for difference in unlike
        ]
        did = (
            f"{first.execution_id} → {second.execution_id}: they did not do the same work; "
            "settings to compare belong in the matrix of one suite"
        )
        raise NotComparable("\n".join([did, *lines]))
    others = {_configuration(cell): cell for cell in second.cells}
    shared = [
        (cell, others[key]) for cell in first.cells if (key := _configuration(cell)) in others
    ]
    if not shared:
        raise NotComparable(
            f"{first.execution_id} and {second.execution_id} have no cell in common: the first has"
            f" {_labels(first.cells)}, the second {_labels(second.cells)}"
        )
    counted = [result for record in both for result in record.results]
    hazards = observe_hazards(counted, {**first.suite.pricing.spot, **second.suite.pricing.spot})
    sides = []
    for record, cells in zip(both, zip(*shared, strict=True), strict=True):
        own = [_of_its_execution(result, record.execution_id) for result in record.results]
        grouped = group_runs(record.suite, cells, own, hazards=hazards)
        sides.append([replace(runs, execution_id=record.execution_id) for runs in grouped])
    known = {cell.cell_id for pair in shared for cell in pair}
    return ExecutionComparison(
        first_id=first.execution_id,
        second_id=second.execution_id,
        is_race=first.suite.search.is_race,
        examples=first.suite.workload.examples,
        cells=_compare_cells(sides[0], sides[1]),
        only_first=tuple(cell.label for cell in first.cells if cell.cell_id not in known),
        only_second=tuple(cell.label for cell in second.cells if cell.cell_id not in known),
        running=_differences(running, other_running),
        environment=_differences(_environment(first.results), _environment(second.results)),
        is_simulated=any(result.is_simulated for result in (*first.results, *second.results)),
    )


def _of_its_execution(result: RunResult, execution_id: str) -> RunResult:
    """The result under the id of its execution, so that no block has trials of both.

    The level of a machine that others use as well changes from one execution to the next, as with a
    draw of hosts.
    """
    named = replace(result, run=replace(result.run, execution_id=execution_id))
    if not _is_local(result.run.cell) or result.environment is None:
        return named
    host = f"this machine during {execution_id}"
    return replace(named, environment=replace(result.environment, host_ids=(host,)))


def _is_local(cell: Cell) -> bool:
    return cell.settings.instance.startswith(LOCAL_PREFIX)


def _on_this_machine(figures: Figures, cells: Sequence[CellRuns]) -> Figures:
    """The figures with how far this machine's level differs from one execution to the next."""
    of_runs = max(
        (figures.cells[runs.key].scatter.share for runs in cells if runs.measured), default=0.0
    )
    share = LEVELS_APART * of_runs
    spread = HostSpread(
        deviation=share, typical=share, degrees_of_freedom=KNOWN_DEGREES, source="this machine"
    )
    local = {
        runs.key: replace(figures.cells[runs.key], hosts=spread)
        for runs in cells
        if _is_local(runs.cell)
    }
    return replace(figures, cells={**figures.cells, **local})


def _labels(cells: Sequence[Cell]) -> str:
    return "; ".join(cell.label for cell in cells)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 1]}…"


def _configuration(cell: Cell) -> tuple[object, ...]:
    return cell.settings, tuple(sorted(cell.hyperparameters.items()))


def _compare_cells(first: Sequence[CellRuns], second: Sequence[CellRuns]) -> tuple[CellChange, ...]:
    pairs = list(zip(first, second, strict=True))
    figures = build_figures((*first, *second))
    model = fit_model(figures)
    local = replace(model, figures=_on_this_machine(figures, (*first, *second)))
    columns = (FigureColumn.SAMPLES_PER_SECOND, FigureColumn.SECONDS, FigureColumn.USD)
    models = {column: correlated(local, column) for column in columns}
    rates, times, costs = (
        [own.compare(new.key, old.key, column) for old, new in pairs]
        for column, own in models.items()
    )
    adjusted = iter(adjust_by_holm([rate.p for rate in rates if rate and rate.p is not None]))
    return tuple(
        CellChange(
            label=max((old.cell.label, new.cell.label), key=len),
            first=build_row(old, model),
            second=build_row(new, model),
            rate=rate,
            seconds=seconds,
            usd=usd,
            parity=_parity(old, new),
            change=_change(rate, next(adjusted) if rate and rate.p is not None else None),
            jobs=_jobs((old, new)),
        )
        for (old, new), rate, seconds, usd in zip(pairs, rates, times, costs, strict=True)
    )


def _parity(old: CellRuns, new: CellRuns) -> LossParity | None:
    if not old.measured or not new.measured:
        return None
    return check_loss_parities([old.measured, new.measured])[0]


def _jobs(pair: Sequence[CellRuns]) -> int | None:
    if any(_is_local(runs.cell) for runs in pair):
        return None
    return min(
        len({result.attempts[-1].job_name for result in runs.measured if result.attempts})
        for runs in pair
    )


def _change(rate: Comparison | None, adjusted_p: float | None) -> Change:
    if rate is None:
        return Change.NOT_MEASURED
    if adjusted_p is None:
        return Change.TOO_FEW_TRIALS
    if adjusted_p >= SIGNIFICANCE:
        return Change.NO_DETECTABLE_DIFFERENCE
    return Change.FASTER if rate.ratio > 1 else Change.SLOWER
