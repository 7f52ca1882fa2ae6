"""Size and work of a token, counted on the model and by hand."""

import pytest
from transformers import AlbertConfig, GPT2Config, MixtralConfig

from tests.training.small_models import small_config
from traindyno.core.suite.choices import Task
from training.models.flops import measure_size
from training.models.model_config import AUTO_CLASSES


def test_gpt2s_flops_by_hand() -> None:
    # Weights in matrix products: 2 layers x 12 x 64^2 + head 1000 x 64 = 162304; 6 FLOPs each a
    # token = 973824. Attention: 2 products x 2 FLOPs x 32 tokens x 64 x 2 layers, forward and twice
    # that backward: x 3 = 49152.
    config = GPT2Config(n_layer=2, n_embd=64, n_head=4, vocab_size=1000, n_positions=32)
    size = measure_size(Task.CAUSAL_LM, config, 32)
    assert size.flops_per_token == 973_824 + 49_152
    # Embeddings 1000 x 64 (shared with the head) + 32 x 64; a layer 12 x 64^2 + 13 x 64; the last
    # norm 2 x 64.
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
    # A layer: 4 x 32^2 + 2 x 32 x 64 = 8192 weights, 6 FLOPs each, and attention 2 x 2 x 8 x 32 x 3
    # = 3072
    assert two.flops_per_token is not None
    assert one.flops_per_token is not None
    assert two.flops_per_token - one.flops_per_token == pytest.approx(6 * 8192 + 3072)


def test_a_mixture_of_experts_works_with_the_chosen_experts_only() -> None:
    config = MixtralConfig(
        vocab_size=96,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
        num_experts_per_tok=2,
    )
    size = measure_size(Task.CAUSAL_LM, config, 8)
    # Query and output 2 x 32^2, key and value 2 x 32 x 16, router 32 x 4, 2 experts x 3 x 32 x 64,
    # head 32 x 96: 18560 weights, 6 FLOPs each. Attention 2 x 2 x 8 x 32 x 3 = 3072.
    assert size.flops_per_token == 6 * 18_560 + 3_072
    # All 4 experts 4 x 3 x 32 x 64, the rest of the layer 3200, 3 norms x 32, head and embedding 2
    # x 32 x 96
    assert size.parameters == 24_576 + 3_200 + 96 + 6_144


@pytest.mark.parametrize(
    ("task", "kind"), [(Task.MASKED_LM, "longformer"), (Task.CAUSAL_LM, "jetmoe")]
)
def test_flops_depending_on_the_data_are_unknown(task: Task, kind: str) -> None:
    config = small_config(kind)
    size = measure_size(task, config, 8)
    assert size.flops_per_token is None
    assert size.parameters == sum(
        p.numel() for p in AUTO_CLASSES[task].from_config(config).parameters()
    )


def test_a_models_own_initialisation_is_not_run() -> None:
    assert measure_size(Task.MASKED_LM, small_config("modernbert"), 8).flops_per_token is not None
