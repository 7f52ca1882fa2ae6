"""The optimizer of a run, with the schedule of its learning rate."""

from collections.abc import Iterable
from math import ceil
from typing import Any

from torch import nn
from torch.distributed.tensor import DTensor
from torch.optim import SGD, AdamW, Optimizer
from torch.optim.lr_scheduler import LRScheduler
from transformers.optimization import TYPE_TO_SCHEDULER_FUNCTION
from transformers.trainer_pt_utils import get_parameter_names

from traindyno.core.run.settings import Settings
from traindyno.core.suite.choices import LearningRateSchedule, OptimizerName

SGD_MOMENTUM = 0.9
FUSED_DEVICES = ("cpu", "cuda")
# The patterns of transformers' Trainer.get_decay_parameter_names; a test compares every family.
UNDECAYED_NAMES = ["bias", "layernorm", "rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]


def mark_decayed(model: nn.Module) -> None:
    """Tells each parameter whether it has weight decay, which only the names and layers of the
    whole model say.
    """
    decayed = {*get_parameter_names(model, [nn.LayerNorm], UNDECAYED_NAMES)}  # type: ignore[no-untyped-call]
    for name, parameter in model.named_parameters():
        parameter.is_decayed = name in decayed  # type: ignore[attr-defined]


def build_optimizer(
    parameters: Iterable[nn.Parameter], settings: Settings, learning_rate: float
) -> Optimizer:
    """Makes the optimizer of marked parameters."""
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    groups = _groups(trained, settings.weight_decay)
    fused = all(parameter.device.type in FUSED_DEVICES for parameter in trained)
    match settings.optimizer:
        case OptimizerName.ADAMW:
            return AdamW(groups, lr=learning_rate, fused=fused)
        case OptimizerName.SGD:
            has_parts = any(
                isinstance(parameter, DTensor) for parameter in trained
            )  # fused SGD takes no DTensor
            return SGD(
                groups, lr=learning_rate, momentum=SGD_MOMENTUM, fused=fused and not has_parts
            )


def schedule_learning_rate(
    optimizer: Optimizer, settings: Settings, *, steps: int, done: int
) -> LRScheduler | None:
    """The schedule of a training of ``steps``, of which ``done`` are done; None if the learning
    rate never changes.
    """
    warmup = settings.lr_warmup_steps
    name = settings.lr_schedule
    options: dict[str, Any] = {
        "num_warmup_steps": int(warmup) if warmup >= 1 else ceil(steps * warmup)
    }
    if name is not LearningRateSchedule.CONSTANT:
        options["num_training_steps"] = steps
    elif not warmup:
        return None
    for group in optimizer.param_groups:
        group["initial_lr"] = group["lr"]
    build: Any = TYPE_TO_SCHEDULER_FUNCTION
    schedule: LRScheduler = build[name.replace("constant", "constant_with_warmup")](
        optimizer, **options, last_epoch=done - 1
    )
    return schedule


def _groups(parameters: list[nn.Parameter], weight_decay: float) -> list[dict[str, object]]:
    """Sharded and whole tensors are in separate groups, because one fused call can't take both."""
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for parameter in parameters:
        decay = weight_decay if parameter.is_decayed else 0.0  # type: ignore[attr-defined]
        groups.setdefault((decay, isinstance(parameter, DTensor)), []).append(parameter)
    return [{"params": members, "weight_decay": decay} for (decay, _), members in groups.items()]
