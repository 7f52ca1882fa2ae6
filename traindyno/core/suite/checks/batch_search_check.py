"""Suites whose cells search their batch: what the search needs."""

from collections.abc import Iterator

from traindyno.core.errors import Problem
from traindyno.core.suite.choices import Jobs, Task
from traindyno.core.suite.settings import HYPERPARAMETER_PREFIX, BatchSearch
from traindyno.core.suite.suite import Suite

BATCH = "batch_size_per_device"


def check_batch_search(suite: Suite) -> Iterator[Problem]:
    """A parent process starts the probes, and each later trial needs what the first one found."""
    found = [(path, value) for path, value in _values(suite) if isinstance(value, BatchSearch)]
    for path, value in found:
        yield from _check_argument(suite, path, value)
    if not found:
        return
    if suite.measurement.jobs is not Jobs.SHARED:
        message = f"got {suite.measurement.jobs}, expected shared: the parent of a shared job probes batches"
        yield Problem(path="measurement.jobs", message=message)
    if suite.measurement.save_model:
        message = "got true, expected false: a run that saves its model has a job without a parent that probes batches"
        yield Problem(path="measurement.save_model", message=message)


def _values(suite: Suite) -> Iterator[tuple[str, object]]:
    yield f"training.{BATCH}", suite.training.get(BATCH)
    for place, value in enumerate(suite.matrix.get(BATCH, ())):
        yield f"matrix.{BATCH}[{place}]", value
    for place, entry in enumerate(suite.include):
        yield f"include[{place}].{BATCH}", entry.get(BATCH)


def _check_argument(suite: Suite, path: str, search: BatchSearch) -> Iterator[Problem]:
    is_script = suite.workload.task is Task.SCRIPT
    if is_script and search.argument is None:
        message = "got nothing, expected the name of the script's hyperparameter that is its batch per device"
        yield Problem(path=f"{path}.argument", message=message)
    elif not is_script and search.argument is not None:
        message = f"got {search.argument}: only task script has hyperparameters of its own, expected none"
        yield Problem(path=f"{path}.argument", message=message)
    elif search.argument is not None and f"{HYPERPARAMETER_PREFIX}{search.argument}" in suite.matrix:
        message = f"got {search.argument}, which is an axis of the matrix: expected another hyperparameter"
        yield Problem(path=f"{path}.argument", message=message)
