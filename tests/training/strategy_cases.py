"""What is compared: tiny models of the four experiments and of families of transformers, ten
batches of each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import AutoTokenizer

from tests.training.small_models import small_values
from traindyno.core.run.settings import LearningRate, Settings
from traindyno.core.run.workload import Model, Workload
from traindyno.core.suite.choices import Compiler, OptimizerName, Strategy, Task
from training.data.batch import Batch
from training.models.blueprint import Blueprint
from training.models.model import build_model
from training.models.objective import IGNORED_LABEL

STEP_COUNT = 10
GLOBAL_BATCH_SIZE = 8
SEQUENCE_LENGTH = 12
VOCABULARY_SIZE = 64
LABEL_COUNT = 3
MASK_TOKEN = 4

GPT = {
    "vocab_size": VOCABULARY_SIZE,
    "n_positions": 16,
    "n_embd": 32,
    "n_layer": 4,
    "n_head": 4,
    "pad_token_id": 0,
}
ENCODER = {
    "vocab_size": VOCABULARY_SIZE,
    "max_position_embeddings": 16,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
}
# Transformers' own plans cut it; Qwen3 has norms within a head, of which each process sees only its
# own.
LLAMA = {
    **ENCODER,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
MIXTRAL = {**LLAMA, "num_local_experts": 4, "num_experts_per_tok": 2}


class Workloads(dict[str, tuple[Task, Mapping[str, Any]]]):
    """Has a task and a model for each name; for ``causal-lm/mixtral`` the small model of that
    family.
    """

    def __missing__(self, name: str) -> tuple[Task, Mapping[str, Any]]:
        task, _, kind = name.partition("/")
        self[name] = Task(task), {"model_type": kind, **small_values(kind)}
        return self[name]


WORKLOADS = Workloads(
    gpt2=(Task.CAUSAL_LM, {"model_type": "gpt2", **GPT}),
    gptj=(Task.CAUSAL_LM, {"model_type": "gptj", "rotary_dim": 4, **GPT}),
    albert=(Task.MASKED_LM, {"model_type": "albert", "embedding_size": 16, **ENCODER}),
    bert=(Task.SEQUENCE_CLASSIFICATION, {"model_type": "bert", **ENCODER}),
)
MODELS = tuple(WORKLOADS)
WORKLOADS |= {
    name: (Task.CAUSAL_LM, {"model_type": name, **config})
    for name, config in (("llama", LLAMA), ("qwen3", LLAMA), ("mixtral", MIXTRAL))
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One model under one setting; ``options`` are the fields of Settings that differ from the
    reference.

    ``is_padded``: whether rows have unequal length; None for what suits the task. ``layer_count``
    is None for the layers of the model's configuration. ``folder``: of a saved model with its
    tokenizer, which is then the case's.
    """

    model: str
    options: Mapping[str, Any] = field(default_factory=dict)
    layer_count: int | None = 4
    is_padded: bool | None = None
    folder: str | None = None

    def settings(self, data_world_size: int) -> Settings:
        accumulation = self.options.get("gradient_accumulation_steps", 1)
        values: dict[str, Any] = {
            "instance": "local.cpu",
            "strategy": Strategy.SINGLE,
            "compiler": Compiler.NONE,
            "batch_size_per_device": GLOBAL_BATCH_SIZE // data_world_size // accumulation,
            "optimizer": OptimizerName.SGD,
            "learning_rate": LearningRate(base=0.1),
            "weight_decay": 0.1,
            "dropout": 0.0,
        }
        return Settings(**{**values, **self.options})


def workload(case: Case) -> Workload:
    task, config = WORKLOADS[case.model]
    layers = (
        {"n_layer" if "n_layer" in config else "num_hidden_layers": case.layer_count}
        if case.layer_count
        else {}
    )
    is_classified = task is Task.SEQUENCE_CLASSIFICATION
    return Workload(
        task=task,
        examples=1,
        model=Model(path=case.folder) if case.folder else Model(config={**config, **layers}),
        sequence_length=SEQUENCE_LENGTH,
        label_count=LABEL_COUNT if is_classified else None,
    )


def blueprint_of(case: Case) -> Blueprint:
    tokenizer = AutoTokenizer.from_pretrained(case.folder) if case.folder else None
    return build_model(workload(case), case.settings(1), tokenizer, model_path=case.folder)


def global_batch(model: str, step: int, *, is_padded: bool | None = None) -> Batch:
    """Rows of equal or unequal length, with as many labels that count as each row gives."""
    generator = torch.Generator().manual_seed(1000 + step)
    tokens = torch.randint(
        5, VOCABULARY_SIZE, (GLOBAL_BATCH_SIZE, SEQUENCE_LENGTH), generator=generator
    )
    task, _ = WORKLOADS[model]
    if is_padded is None:
        is_padded = task is not Task.CAUSAL_LM
    if not is_padded:
        lengths = torch.full((GLOBAL_BATCH_SIZE,), SEQUENCE_LENGTH)
    else:
        lengths = torch.randint(
            SEQUENCE_LENGTH // 2, SEQUENCE_LENGTH + 1, (GLOBAL_BATCH_SIZE,), generator=generator
        )
    mask = torch.arange(SEQUENCE_LENGTH)[None] < lengths[:, None]
    tokens = tokens * mask
    batch = {"input_ids": tokens, **({"attention_mask": mask.long()} if is_padded else {})}
    match task:
        case Task.CAUSAL_LM:
            return {**batch, "labels": tokens.masked_fill(~mask, IGNORED_LABEL)}
        case Task.MASKED_LM:
            chosen = (torch.rand(tokens.shape, generator=generator) < 0.3) & mask
            chosen[:, 0] = True
            labels = tokens.masked_fill(~chosen, IGNORED_LABEL)
            return {**batch, "input_ids": tokens.masked_fill(chosen, MASK_TOKEN), "labels": labels}
        case _:
            return {
                **batch,
                "labels": torch.randint(0, LABEL_COUNT, (GLOBAL_BATCH_SIZE,), generator=generator),
            }


def step_batches(
    case: Case, settings: Settings, step: int, data_rank: int, data_world_size: int
) -> list[Batch]:
    """This rank's batches of one step, each with the weight that its labels have among all."""
    whole = global_batch(case.model, step, is_padded=case.is_padded)
    parts = data_world_size * settings.gradient_accumulation_steps
    counted = (whole["labels"] != IGNORED_LABEL).sum()
    batches = []
    for number in range(settings.gradient_accumulation_steps):
        part = {
            name: tensor.chunk(parts)[number * data_world_size + data_rank]
            for name, tensor in whole.items()
        }
        own = (part["labels"] != IGNORED_LABEL).sum()
        if WORKLOADS[case.model][0] is Task.MASKED_LM:
            part["weight"] = own * parts / counted
        batches.append(part)
    return batches
