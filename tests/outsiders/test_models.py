"""Models of families that nobody here wrote train with the loss that transformers itself computes, and learn."""

from typing import Any

import pytest
import torch

from traindyno.core.suite.choices import Task
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.workload import Model, Workload
from training.models.model import build_model
from training.models.objective import IGNORED_LABEL, Objective

SEQUENCE_LENGTH, VOCABULARY_SIZE = 12, 64
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
CAUSAL = {
    "gpt2": GPT,
    "gptj": {**GPT, "rotary_dim": 8},
    "gpt_neo": {
        **SMALL,
        "hidden_size": 32,
        "num_layers": 2,
        "num_heads": 4,
        "max_position_embeddings": 16,
        "attention_types": [[["global", "local"], 1]],
    },
    "gpt_neox": LAYERS,
    "opt": {**LAYERS, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "bloom": {**SMALL, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "falcon": LAYERS,
    "llama": GROUPED,
    "mistral": GROUPED,
    "qwen2": GROUPED,
    "qwen3": GROUPED,
    "gemma": GROUPED,
    "phi": LAYERS,
    "olmo": LAYERS,
    "stablelm": GROUPED,
}
MASKED = {
    "bert": LAYERS,
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
    "distilbert": {**SMALL, "dim": 32, "hidden_dim": 64, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 16},
    "albert": {**LAYERS, "embedding_size": 16},
    "electra": {**LAYERS, "embedding_size": 16},
    "mpnet": ROBERTA,
    "deberta-v2": LAYERS,
}
CLASSIFIED = {"bert": LAYERS, "roberta": ROBERTA, "distilbert": MASKED["distilbert"], "gpt2": GPT, "llama": GROUPED}
CASES = [
    *((Task.CAUSAL_LM, family, config) for family, config in CAUSAL.items()),
    *((Task.MASKED_LM, family, config) for family, config in MASKED.items()),
    *((Task.SEQUENCE_CLASSIFICATION, family, config) for family, config in CLASSIFIED.items()),
]


def batch_of(task: Task) -> dict[str, torch.Tensor]:
    """Rows of unequal length, as data has them."""
    random = torch.Generator().manual_seed(5)
    tokens = torch.randint(5, VOCABULARY_SIZE, (4, SEQUENCE_LENGTH), generator=random)
    mask = torch.ones_like(tokens)
    mask[1, 7:] = 0
    tokens[mask == 0] = 0
    if task is Task.SEQUENCE_CLASSIFICATION:
        labels = torch.tensor([0, 1, 2, 1])
    elif task is Task.MASKED_LM:
        labels = torch.where(torch.rand(tokens.shape, generator=random) < 0.3, tokens, IGNORED_LABEL)
        labels[mask == 0] = IGNORED_LABEL
    else:
        labels = torch.where(mask == 1, tokens, IGNORED_LABEL)
    return {"input_ids": tokens, "attention_mask": mask, "labels": labels}


@pytest.mark.parametrize(("task", "family", "config"), CASES, ids=[f"{task}-{family}" for task, family, _ in CASES])
def test_a_family_trains_with_the_loss_of_transformers(task: Task, family: str, config: dict[str, Any]) -> None:
    workload = Workload(
        task=task,
        examples=8,
        model=Model(config={"model_type": family, **config}),
        sequence_length=SEQUENCE_LENGTH,
        label_count=3 if task is Task.SEQUENCE_CLASSIFICATION else None,
    )
    blueprint = build_model(workload, Settings(instance="local.cpu", dropout=0.0), None, model_path=None)
    model = blueprint.materialise(torch.device("cpu"))
    objective, batch = Objective(model, task), batch_of(task)
    loss = objective(**batch)
    first = loss.item()
    assert first == pytest.approx(model(**batch).loss.item(), rel=1e-5)
    optimizer = torch.optim.AdamW(objective.parameters(), lr=5e-3)
    for _ in range(3):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        loss = objective(**batch)
    assert loss.item() < first
