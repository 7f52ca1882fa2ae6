"""The size of a model, of which its memory and the time of its steps follow."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Shape of a model.

    ``flops_per_token`` counts forward and backward. ``vocabulary_size`` is the width of the output,
    0 for a classifier. ``intermediate_size`` is the width inside a layer's feed-forward part, of
    all experts that one token passes.
    """

    parameters: int
    flops_per_token: float
    layers: int
    hidden_size: int
    intermediate_size: int
    vocabulary_size: int
    sequence_length: int
