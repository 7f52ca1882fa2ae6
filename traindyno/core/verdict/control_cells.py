"""The control cells that separate the effects of several differences; each is a cell that planning accepts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.suite.arguments import with_all_arguments
from traindyno.core.suite.cells import baseline_point, is_in_grid, make_cell
from traindyno.core.suite.checks.suite_check import check_suite
from traindyno.core.suite.choices import TRAITS
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX, Effect, Settings, options_of_strategies, settings_with
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.suite.suite_file import settings_document
from traindyno.core.verdict.global_batch import GlobalBatches

MOST_CONTROLS = 3
# They determine how many replicas of the model share a global batch.
PLACEMENTS = settings_with(Effect.PLACEMENT, Effect.DEGREE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Control:
    """A cell that differs in one setting less. ``include``: a suite's entry for it. ``cell_id`` is set if it exists."""

    cell_id: str | None
    include: Mapping[str, Any]
    isolates: str


def find_controls(
    first: Cell, second: Cell, changed: Sequence[str], *, suite: Suite, cells: Sequence[Cell], batches: GlobalBatches
) -> tuple[Control, ...]:
    """``changed``: the settings and arguments in which the two cells differ. All cells have all of their arguments."""
    found = []
    for isolates, control in _candidates(first, second, changed, batches):
        if any(_is_same(control, cell) for cell in (first, second)):
            continue
        existing = next((cell.cell_id for cell in cells if _is_same(control, cell)), None)
        entry = _entry(suite, control)
        if existing or (entry is not None and _is_accepted(suite, cells, control, entry)):
            found.append(Control(cell_id=existing, include=_document(entry or {}, control), isolates=isolates))
    return tuple(found[:MOST_CONTROLS])


def changed_fields(first: Cell, second: Cell) -> list[str]:
    names = [
        field.name
        for field in fields(Settings)
        if getattr(first.settings, field.name) != getattr(second.settings, field.name)
    ]
    given = sorted({*first.hyperparameters, *second.hyperparameters})
    return names + [
        f"{HYPERPARAMETER_PREFIX}{name}"
        for name in given
        if first.hyperparameters.get(name) != second.hyperparameters.get(name)
    ]


def _candidates(
    first: Cell, second: Cell, changed: Sequence[str], batches: GlobalBatches
) -> Iterator[tuple[str, Cell]]:
    """The effect that each control would show alone, and the control."""
    units = _units(first, second, changed)
    divider = batches.divider(first, second)
    if len(units) == 1:
        same_batch = batches.with_batch(second, batches.of(first), divider)
        if same_batch is not None:
            yield " and ".join(units[0]), same_batch
        return
    for names in units:
        control = _restored(first, second, names)
        if set(PLACEMENTS).intersection(names):
            control = batches.with_batch(control, batches.of(first), divider) or control
        yield " and ".join(names), control


def _units(first: Cell, second: Cell, changed: Sequence[str]) -> list[tuple[str, ...]]:
    """What can be changed alone. An image is for a kind of device, a compiler and a strategy: these go together. So do
    another kind of device and its compiler.
    """
    together: set[str] = set()
    if "image" in changed:
        together |= {"image", "compiler", "strategy"}
    if _kind(first) != _kind(second):
        together |= {"instance", "image", "compiler"}
    joint = tuple(name for name in changed if name in together)
    return [*([joint] if joint else []), *((name,) for name in changed if name not in together)]


def _restored(first: Cell, second: Cell, names: Sequence[str]) -> Cell:
    """The first cell with the second's values of these: compared with the first, it shows their effect alone.

    A strategy's own options change with it.
    """
    own = [name for name in names if not name.startswith(HYPERPARAMETER_PREFIX)]
    options = options_of_strategies() if "strategy" in names else ()
    settings = replace(first.settings, **{name: getattr(second.settings, name) for name in (*own, *options)})
    arguments = dict(first.hyperparameters)
    for name in (name.removeprefix(HYPERPARAMETER_PREFIX) for name in names if name not in own):
        arguments.pop(name, None)
        if name in second.hyperparameters:
            arguments[name] = second.hyperparameters[name]
    return replace(first, settings=settings, hyperparameters=arguments)


def _is_same(cell: Cell, other: Cell) -> bool:
    return (cell.settings, cell.hyperparameters) == (other.settings, other.hyperparameters)


def _entry(suite: Suite, control: Cell) -> Mapping[str, Any] | None:
    """A suite's ``include`` entry for the cell; None if it lacks an argument that the baseline has."""
    baseline = with_all_arguments(make_cell(suite, baseline_point(suite)), suite.workload)
    if baseline.hyperparameters.keys() - control.hyperparameters.keys():
        return None
    return {name: _value(control, name) for name in changed_fields(baseline, control)}


def _value(cell: Cell, name: str) -> Any:
    if name.startswith(HYPERPARAMETER_PREFIX):
        return cell.hyperparameters[name.removeprefix(HYPERPARAMETER_PREFIX)]
    return getattr(cell.settings, name)


def _document(entry: Mapping[str, Any], control: Cell) -> dict[str, Any]:
    document = settings_document(control.settings)
    return {name: document.get(name, value) for name, value in entry.items()}


def _is_accepted(suite: Suite, cells: Sequence[Cell], control: Cell, entry: Mapping[str, Any]) -> bool:
    """Whether the checks of planning accept it beside the baseline, and the suite's cells have its software.

    What the lab has images for is not known here, so that a control names no new combination.
    """
    is_excluded = entry.keys() <= suite.matrix.keys() and is_in_grid(suite, entry)
    if is_excluded or _platform(control) not in {_platform(cell) for cell in cells}:
        return False
    point = baseline_point(suite)
    alone = replace(
        suite,
        matrix={name: (value,) for name, value in point.items()},
        baseline={},
        include=(entry,),
        exclude=(),
        claims=None,
    )
    return not list(check_suite(alone))


def _platform(cell: Cell) -> tuple[object, ...]:
    """What the image has to serve, and the image."""
    settings = cell.settings
    return _kind(cell), settings.compiler, TRAITS[settings.strategy].sagemaker_collectives, settings.image


def _kind(cell: Cell) -> tuple[object, ...]:
    found = find_instance_type(cell.settings.instance)
    return (found.accelerator_kind, found.is_local) if found else ()
