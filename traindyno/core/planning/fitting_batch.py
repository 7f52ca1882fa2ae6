"""A batch that fits by a cell's own estimate, without a further one."""

from traindyno.core.planning.memory import CellMemory
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.settings import Settings


def fitting_batch(memory: CellMemory, settings: Settings) -> int | None:
    """The largest batch per device may be larger, never smaller. None for a cell that does not fit or is unknown.

    All that is neither parameters nor optimizer state grows with the batch at most in proportion: activations do, and
    gradients do not grow.
    """
    estimate, usable = memory.finding.estimate, memory.usable_bytes
    if estimate is None or usable is None or memory.is_too_large or not estimate.activation_bytes:
        return None
    room = usable - estimate.parameter_bytes - estimate.optimizer_bytes
    batch = settings.batch_size_per_device * room // estimate.activation_bytes
    parts = settings.micro_batches if settings.strategy is Strategy.PIPELINE else None
    return batch - batch % (parts or 1)
