"""The memory that a step of a built-in task needs, before one ran: closed forms of the trainer's
tensors.

Parameters, gradients and optimizer state follow from the strategy. The weights of the activations
are fitted to the trainer's own steps on fake tensors, storage by storage (``plan --memory``), which
take longer than a table may.
"""

from traindyno.core.suite.choices import OptimizerName, Precision, Strategy
from traindyno.core.suite.settings import Settings
from traindyno.slices.estimates.step_time import ModelShape, fitted
from traindyno.slices.estimates.suite import Estimated

STATE_BYTES = {OptimizerName.ADAMW: 8, OptimizerName.SGD: 4}
WEIGHT_BYTES = 4
SHARDS_ALL, SHARDS_STATE = {Strategy.FSDP}, {Strategy.FSDP, Strategy.ZERO1}
#: The strategies that have a closed form.
ESTIMATED = {Strategy.SINGLE, Strategy.DDP, *SHARDS_STATE}


def held_bytes(shape: ModelShape, settings: Settings, processes: int) -> tuple[float, float]:
    """Parameters with the optimizer's state, and gradients, of one process."""
    parts = processes if settings.strategy in SHARDS_ALL else 1
    state_parts = processes if settings.strategy in SHARDS_STATE else 1
    weights = WEIGHT_BYTES * shape.parameters / parts
    return weights + STATE_BYTES[settings.optimizer] * shape.parameters / state_parts, weights


def memory_terms(
    shape: ModelShape, settings: Settings, processes: int
) -> tuple[tuple[float, ...], ...]:
    """The bytes beside ``held_bytes`` before their weights, when the backward pass begins and when
    it ends.
    """
    _, gradients = held_bytes(shape, settings, processes)
    tokens = settings.batch_size * shape.sequence_length
    is_half = settings.precision is not Precision.FP32
    size = 2 if is_half else 4
    recomputes, shards = settings.activation_checkpointing, settings.strategy in SHARDS_ALL
    hidden, inner = tokens * shape.hidden_size * size, tokens * shape.intermediate_size * size
    embedding = shape.vocabulary_size * shape.hidden_size
    layer = (shape.parameters - embedding) / shape.layers
    buckets = 0.0 if shards or processes == 1 else WEIGHT_BYTES * shape.parameters
    accumulates = settings.gradient_accumulation_steps > 1 or settings.global_batch_size is not None
    at_begin = (
        gradients if accumulates else 0.0,
        0.0 if recomputes else shape.layers * hidden,
        0.0 if recomputes else shape.layers * inner,
        shape.layers * hidden + 4 * hidden + 2 * inner if recomputes else 0.0,
        4.0 * tokens * shape.vocabulary_size,
        4.0 * tokens * shape.hidden_size,
        size * layer if shards else 0.0,
        size * embedding if shards else 0.0,
        2.0 * shape.parameters if is_half and not shards else 0.0,
        buckets,
    )
    at_end = (
        gradients,
        0.0,
        0.0,
        4 * hidden + 2 * inner,
        0.0,
        4.0 * tokens * shape.hidden_size,
        WEIGHT_BYTES * layer if shards else 0.0,
        WEIGHT_BYTES * embedding if shards else 0.0,
        0.0,
        buckets,
    )
    return at_begin, at_end


def estimate_peak(shape: ModelShape, settings: Settings, processes: int) -> Estimated | None:
    """Bytes of one device; None for a strategy without a closed form.

    98 % of peaks are below ``high``.
    """
    if settings.strategy not in ESTIMATED:
        return None
    figures = fitted()["memory"]
    most = max(
        sum(weight * term for weight, term in zip(figures["weights"], terms, strict=True))
        for terms in memory_terms(shape, settings, processes)
    )
    peak = held_bytes(shape, settings, processes)[0] + most
    return Estimated(mean=peak, low=peak * figures["low"], high=peak * figures["high"])
