"""Classifiers of families that nobody here wrote have the loss that transformers itself computes.

The other tasks are in tests/training/test_families.py.
"""

import pytest
import torch

from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Model, Workload
from traindyno.core.suite.choices import Task
from training.models.model import build_model
from training.models.objective import Objective

SEQUENCE_LENGTH = 12
VOCABULARY_SIZE = 64
SMALL = {"vocab_size": VOCABULARY_SIZE, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GPT = {**SMALL, "n_positions": 16, "n_embd": 32, "n_layer": 2, "n_head": 4}
LAYERS = {
    **SMALL,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 16,
}
GROUPED = {**LAYERS, "num_key_value_heads": 2, "head_dim": 8}
# Position numbers of RoBERTa's kind begin after the padding token's.
ROBERTA = {**LAYERS, "max_position_embeddings": 18}
DISTILBERT = {
    **SMALL,
    "dim": 32,
    "hidden_dim": 64,
    "n_layers": 2,
    "n_heads": 4,
    "max_position_embeddings": 16,
}
CLASSIFIED = {
    "bert": LAYERS,
    "roberta": ROBERTA,
    "distilbert": DISTILBERT,
    "gpt2": GPT,
    "llama": GROUPED,
}


@pytest.mark.parametrize("family", CLASSIFIED)
def test_a_family_classifies_with_the_loss_of_transformers(family: str) -> None:
    """Rows of unequal length, as data has them."""
    workload = Workload(
        task=Task.SEQUENCE_CLASSIFICATION,
        examples=8,
        model=Model(config={"model_type": family, **CLASSIFIED[family]}),
        sequence_length=SEQUENCE_LENGTH,
        label_count=3,
    )
    blueprint = build_model(
        workload, Settings(instance="local.cpu", dropout=0.0), None, model_path=None
    )
    model = blueprint.materialise(torch.device("cpu"))
    tokens = torch.randint(
        5, VOCABULARY_SIZE, (4, SEQUENCE_LENGTH), generator=torch.Generator().manual_seed(5)
    )
    mask = torch.ones_like(tokens)
    mask[1, 7:] = 0
    batch = {
        "input_ids": tokens * mask,
        "attention_mask": mask,
        "labels": torch.tensor([0, 1, 2, 1]),
    }
    ours = Objective(model, Task.SEQUENCE_CLASSIFICATION)(**batch).item()
    assert ours == pytest.approx(model(**batch).loss.item(), rel=1e-5)
