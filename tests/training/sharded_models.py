"""What a rank holds while its part of a model is built, and the values of the whole model
afterwards.
"""

import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Model as AskedModel
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite_file import parse_part
from training.memory.tracker import MemoryTracker
from training.models import tensor_file
from training.models.blueprint import Blueprint
from training.models.model import build_model, empty_model
from training.process.process_group import end_process_group, read_topology
from training.run.saving import save_model
from training.strategies import TrainingStrategy, build_strategy, set_up

CPU = torch.device("cpu")
# A thread of the process group may release a gathered tensor late, which only adds: the least of
# three peaks counts.
SAVES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A model with initial values, or a saved one by its path and with its configuration."""

    config: dict[str, Any]
    task: Task = Task.CAUSAL_LM
    path: str | None = None
    label_count: int | None = None

    def blueprint(self, **settings: Any) -> Blueprint:
        workload = Workload(
            task=self.task,
            examples=100,
            model=AskedModel(path=self.path) if self.path else AskedModel(config=self.config),
            sequence_length=16,
            label_count=self.label_count,
        )
        read = parse_part(
            {"instance": "local.cpu", "batch_size_per_device": 1, **settings}, Settings
        )
        return build_model(workload, read, None, model_path=self.path)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A placed model; rank 0 has its whole state.

    Bytes are of tensors: at most while it is built, afterwards, and at most while it is saved.
    """

    state: dict[str, torch.Tensor]
    peak_bytes: int
    kept_bytes: int
    saving_peak_bytes: int


def values_of(model: Model) -> dict[str, torch.Tensor]:
    """The values that one process has."""
    blueprint = model.blueprint(strategy="single")
    return {
        name: tensor.clone() for name, tensor in blueprint.materialise(CPU).state_dict().items()
    }


def save(
    model: Model, values: dict[str, torch.Tensor], folder: Path, *, shard_bytes: int = 1 << 30
) -> None:
    fresh = empty_model(model.task, model.blueprint(strategy="single").model.config)
    save_model(iter(values.items()), fresh, None, folder, shard_bytes=shard_bytes)


def place_all(models: list[Model], all_settings: list[dict[str, Any]]) -> list[list[Placed]]:
    """What this process of a group holds, for each model under each of the settings."""
    torch.set_num_threads(1)
    placed = [[_place(model, settings) for settings in all_settings] for model in models]
    end_process_group()
    return placed


def _place(model: Model, values: dict[str, Any]) -> Placed:
    topology = read_topology()
    settings = parse_part({"instance": "local.cpu", "batch_size_per_device": 1, **values}, Settings)
    strategy = build_strategy(set_up(settings, model.task, topology))
    with MemoryTracker() as tracker:
        strategy.place(model.blueprint(**values))
        peak = max(tracker.levels)
        kept = tracker.levels[-1]
        saving = []
        for _ in range(SAVES):
            tracker.take_levels()
            _save(strategy, model, is_first=topology.is_first)
            saving.append(max(tracker.levels))
    return Placed(
        state=dict(strategy.stream_state_dict()),
        peak_bytes=peak,
        kept_bytes=kept,
        saving_peak_bytes=min(saving),
    )


def _save(strategy: TrainingStrategy, model: Model, *, is_first: bool) -> None:
    """Save it as a run does at its end, with tensors that are long beside a part of one."""
    tensor_file.PART_BYTES = 4096
    tensors = strategy.stream_state_dict()
    if is_first:
        with tempfile.TemporaryDirectory() as folder:
            fresh = empty_model(model.task, model.blueprint(strategy="single").model.config)
            save_model(tensors, fresh, None, Path(folder))
    deque(tensors, maxlen=0)
