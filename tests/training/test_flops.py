"""Size and work of a token, counted on the model and by hand."""

import pytest
from transformers import AlbertConfig, GPT2Config

from traindyno.core.suite.choices import Task
from training.models.flops import measure_size


def test_gpt2s_flops_by_hand() -> None:
    # Weights in matrix products: 2 layers x 12 x 64^2 + head 1000 x 64 = 162304; 6 FLOPs each a token = 973824.
    # Attention: 2 products x 2 FLOPs x 32 tokens x 64 x 2 layers, forward and twice that backward: x 3 = 49152.
    config = GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=1000, n_positions=32)
    size = measure_size(Task.CAUSAL_LM, config, 32)
    assert size.flops_per_token == 973_824 + 49_152
    # Embeddings 1000 x 64 (shared with the head) + 32 x 64; a layer 12 x 64^2 + 13 x 64; the last norm 2 x 64.
    assert size.parameters == 64_000 + 2_048 + 2 * (49_152 + 832) + 128


def albert(layers: int) -> AlbertConfig:
    return AlbertConfig(
        vocab_size=100,
        embedding_size=16,
        hidden_size=32,
        num_attention_heads=2,
        intermediate_size=64,
        num_hidden_layers=layers,
    )


def test_albert_works_for_every_layer_though_the_layers_share_weights() -> None:
    one, two = (measure_size(Task.MASKED_LM, albert(layers), 8) for layers in (1, 2))
    assert one.parameters == two.parameters
    # A layer: 4 x 32^2 + 2 x 32 x 64 = 8192 weights, 6 FLOPs each, and attention 2 x 2 x 8 x 32 x 3 = 3072
    assert two.flops_per_token - one.flops_per_token == pytest.approx(6 * 8192 + 3072)
