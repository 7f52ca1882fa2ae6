"""How many training sequences the longest run of a suite reads: no more are made."""

from collections.abc import Iterable

from traindyno.core.suite.choices import Task
from traindyno.core.suite.processes import planned_batch_size
from traindyno.core.suite.suite import Cell, Suite

# At most this many training sequences are held out if there is no evaluation split.
MOST_HELD_OUT = 512


def needed_sequences(suite: Suite, cells: Iterable[Cell]) -> int | None:
    """None where all examples of the workload are needed, or where a cell's batch is unknown.

    Rows to classify may be sorted by their label, so that a part of the examples could lack a class.
    """
    if suite.workload.task is Task.SEQUENCE_CLASSIFICATION:
        return None
    batches = [planned_batch_size(cell.settings) for cell in cells]
    known = [batch for batch in batches if batch is not None]
    if len(known) < len(batches):
        return None
    needed = suite.job_measurement.max_steps * max(known, default=0)
    dataset = suite.workload.dataset
    if suite.job_measurement.evaluates and (dataset is None or dataset.evaluation_split is None):
        needed += MOST_HELD_OUT
    return needed if 0 < needed < suite.workload.examples else None
