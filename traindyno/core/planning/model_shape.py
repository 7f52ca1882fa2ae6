"""The size of a model, of which the time of its steps follows."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Shape of a model. ``flops_per_token`` counts forward and backward."""

    parameters: int
    flops_per_token: float
    layers: int
    hidden_size: int
    sequence_length: int
