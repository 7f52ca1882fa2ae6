"""The floating point operations of training the posts' models, from their published sizes.

They count the matrix products (2 per multiply-add, attention in full), and three times the forward
pass for forward and backward, as in training/models/flops.py. What is computed again is not
counted.
"""

from dataclasses import dataclass

FORWARD_AND_BACKWARD = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerSize:
    """The size of a transformer."""

    layers: int
    width: int
    #: The width of the feed-forward layer.
    inner: int
    sequence_length: int
    #: The published configuration.
    source: str
    #: The weights outside the layers that each token is multiplied with.
    head_weights: int = 0
    #: The weights that each sequence is multiplied with.
    pooled_weights: int = 0

    @property
    def training_flops_per_sample(self) -> float:
        """FLOPS of one sequence, forward and backward."""
        tokens = self.sequence_length
        layer_weights = 4 * self.width**2 + 2 * self.width * self.inner
        products = tokens * (self.layers * layer_weights + self.head_weights) + self.pooled_weights
        attention = 2 * self.layers * tokens**2 * self.width
        return FORWARD_AND_BACKWARD * 2.0 * (products + attention)

    @property
    def flops_source(self) -> str:
        return (
            f"{self.source}: {self.layers} layers of width {self.width:,}, "
            f"{self.sequence_length:,} tokens a sample; 3 x the forward pass's matrix products"
        )


GPT2 = TransformerSize(
    layers=12,
    width=768,
    inner=3072,
    sequence_length=512,
    head_weights=768 * 50_257,
    source="gpt2's config.json",
)
GPT_J = TransformerSize(
    layers=28,
    width=4096,
    inner=16_384,
    sequence_length=2048,
    head_weights=4096 * 50_400,
    source="EleutherAI/gpt-j-6B's config.json",
)
# Its layers share their parameters and are computed 12 times; two projections go to and from
# embeddings of 128.
ALBERT = TransformerSize(
    layers=12,
    width=768,
    inner=3072,
    sequence_length=512,
    head_weights=2 * 768 * 128 + 128 * 30_000,
    source="albert-base-v2's config.json",
)
BERT = TransformerSize(
    layers=12,
    width=768,
    inner=3072,
    sequence_length=128,
    pooled_weights=768**2 + 2 * 768,
    source="bert-base-uncased's config.json",
)
