"""The posts' models as transformers builds them, against the sizes that the rehearsals and the
claims take for them.
"""

from pathlib import Path

import pytest
import torch
import yaml
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    AlbertModel,
    BertConfig,
    BertModel,
    GPT2Config,
    GPTJConfig,
    GPTJForCausalLM,
    PreTrainedConfig,
    PreTrainedModel,
)

from bench.transformer_flops import ALBERT, BERT, GPT2, GPT_J, TransformerSize
from traindyno.core.suite.choices import Task
from traindyno.slices.claims.suite import Claim, parse_claims
from training.models.flops import measure_size

SUITES = Path(__file__).parents[2] / "suites"
# The defaults of the classes are those of the published models, but for ALBERT, where they are of
# the largest.
ALBERT_BASE = AlbertConfig(hidden_size=768, num_attention_heads=12, intermediate_size=3072)
ALBERT_LARGE = AlbertConfig(
    hidden_size=1024, num_attention_heads=16, intermediate_size=4096, num_hidden_layers=24
)
BERT_LARGE = BertConfig(
    hidden_size=1024, num_attention_heads=16, intermediate_size=4096, num_hidden_layers=24
)


@pytest.mark.parametrize(
    ("size", "task", "config"),
    [
        (GPT2, Task.CAUSAL_LM, GPT2Config()),
        (GPT_J, Task.CAUSAL_LM, GPTJConfig()),
        (ALBERT, Task.MASKED_LM, ALBERT_BASE),
        (BERT, Task.SEQUENCE_CLASSIFICATION, BertConfig()),
    ],
    ids=["gpt2", "gpt-j", "albert", "bert"],
)
def test_the_published_sizes_give_the_labs_count_of_work(
    size: TransformerSize, task: Task, config: PreTrainedConfig
) -> None:
    counted = measure_size(task, config, size.sequence_length)
    assert counted.flops_per_token is not None
    assert size.training_flops_per_sample == pytest.approx(
        counted.flops_per_token * size.sequence_length, rel=1e-3
    )


def parameters(model: type[PreTrainedModel], config: PreTrainedConfig) -> int:
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in model(config).parameters())


def claim(pack: str, claim_id: str) -> Claim:
    document = yaml.safe_load((SUITES / pack / "claims.yaml").read_text(encoding="utf-8"))
    return next(stated for stated in parse_claims(document).claims if stated.claim_id == claim_id)


def test_alberts_claimed_parameters_follow_from_its_configuration() -> None:
    counted = parameters(AlbertForMaskedLM, ALBERT_BASE)
    assert round(counted / 1e6) == claim("albert-scaling", "parameters").published / 1e6


def test_the_claimed_reduction_is_between_the_large_models() -> None:
    reduction = parameters(BertModel, BERT_LARGE) / parameters(AlbertModel, ALBERT_LARGE)
    # 18.95, which the post cuts
    assert int(reduction) == claim("albert-scaling", "parameter-reduction").published
    base = parameters(BertModel, BertConfig()) / parameters(AlbertModel, ALBERT_BASE)
    # the claim's note says so
    assert round(base, 1) == 9.4


def test_gpt_js_claimed_parameters_follow_from_its_configuration() -> None:
    counted = parameters(GPTJForCausalLM, GPTJConfig())
    assert counted == pytest.approx(claim("gptj-parallel", "parameters").published, rel=0.05)
