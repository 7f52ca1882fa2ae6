"""Notes of a plan on its cells: loader workers for the vCPUs, divisions of the processes, and a
learning rate that reaches no quality.
"""

from collections.abc import Iterator, Sequence

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.run.processes import Degrees, degrees_of, neighbour_count, world_size
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Suite

# A script's argument: PyTorch's num_workers, transformers' dataloader_num_workers.
ARGUMENT = "num_workers"
LEARNING_RATE = "learning_rate"


def loader_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """One sentence for each instance type and number of processes; none where the vCPUs are
    unknown.
    """
    workers = set()
    for cell in cells:
        given = [value for name, value in cell.hyperparameters.items() if name.endswith(ARGUMENT)]
        workers.add(given[0] if given else cell.settings.loader_workers)
    if len(workers) < 2:
        return
    yield from dict.fromkeys(note for cell in cells if (note := _note(cell)))


def _note(cell: Cell) -> str | None:
    known_type = find_instance_type(cell.settings.instance)
    processes = world_size(cell.settings)
    if known_type is None or known_type.vcpus is None or processes is None:
        return None
    per_instance = processes // cell.settings.instance_count
    share = known_type.vcpus // per_instance
    workers = "1 loader worker" if share == 1 else f"{share} loader workers"
    place = "in its process" if per_instance == 1 else f"in each of its {per_instance} processes"
    return (
        f"{known_type.name} has {known_type.vcpus} vCPUs: {workers} {place} would use all of them"
    )


def composition_notes(cells: Sequence[Cell]) -> Iterator[str]:
    """One sentence for each caution; none where the number of devices is unknown."""
    for cell in cells:
        processes = world_size(cell.settings)
        if processes is not None:
            degrees = degrees_of(cell.settings, processes)
            yield from _notes(cell, degrees, neighbour_count(cell.settings, processes))


def _notes(cell: Cell, degrees: Degrees, per_instance: int) -> Iterator[str]:
    what = f"cell {cell.label} ({cell.cell_id})"
    if per_instance % degrees.tensor:
        yield (
            f"{what}: a tensor group of {degrees.tensor} processes spans instances of "
            f"{per_instance} devices, and its processes exchange activations twice in each block; "
            f"a tensor_degree that divides {per_instance} keeps it within one"
        )
    uneven = {name: getattr(degrees, name) for name in ("tensor", "pipeline")}
    for name, degree in uneven.items():
        if degree & (degree - 1):
            yield (
                f"{what}: {name}_degree {degree} is no power of two, so that few numbers of heads "
                "and blocks divide"
            )


def learning_note(suite: Suite) -> str | None:
    """A caution where the goal is a quality, the weights begin at random, and nobody has decided a
    learning rate.
    """
    model = suite.workload.model
    target = suite.goal.target
    points = (suite.training, suite.baseline, suite.matrix, *suite.include)
    is_decided = any(LEARNING_RATE in point for point in points)
    if target is None or model is None or model.config is None or is_decided:
        return None
    return (
        "training.learning_rate: its default is for fine-tuning, and this model begins with random "
        f"weights: {target} may be out of reach; expected a higher one, such as 0.001"
    )


def evaluation_note(suite: Suite) -> str | None:
    """A caution where a model is evaluated on what it was trained on."""
    dataset = suite.workload.dataset
    if dataset is None or dataset.evaluation_split != dataset.split:
        return None
    return (
        f"workload.dataset.evaluation_split: {dataset.split} is what is trained on, so that its "
        "quality says nothing of other texts; expected another split, or none"
    )
