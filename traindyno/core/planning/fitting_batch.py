"""A batch that fits by a cell's own estimate, without a further one."""

from traindyno.core.planning.memory import MemoryEstimate
from traindyno.core.suite.settings import Settings, has_effect


def fitting_batch(estimate: MemoryEstimate | None, settings: Settings, usable_bytes: int | None) -> int | None:
    """The largest batch per device may be larger, never smaller. None for a cell that does not fit or is unknown.

    All that is neither parameters nor optimizer state grows with the batch at most in proportion: activations do, and
    gradients do not grow.
    """
    if estimate is None or usable_bytes is None or estimate.peak_bytes > usable_bytes or not estimate.activation_bytes:
        return None
    room = usable_bytes - estimate.parameter_bytes - estimate.optimizer_bytes
    batch = settings.batch_size * room // estimate.activation_bytes
    return batch - batch % (settings.micro_batches if has_effect("micro_batches", settings) else 1)


def most_bytes(estimate: MemoryEstimate, settings: Settings, batch: int) -> int:
    """The most that a batch of at least the estimated one may need: activations grow in proportion to it."""
    return (
        estimate.parameter_bytes + estimate.optimizer_bytes + estimate.activation_bytes * batch // settings.batch_size
    )
