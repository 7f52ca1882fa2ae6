"""The optimizer of a run."""

from collections.abc import Iterable

from torch import nn
from torch.distributed.tensor import DTensor
from torch.optim import SGD, AdamW, Optimizer

from traindyno.core.suite.choices import OptimizerName
from traindyno.core.suite.settings import Settings

SGD_MOMENTUM = 0.9
FUSED_DEVICES = ("cpu", "cuda")


def build_optimizer(parameters: Iterable[nn.Parameter], settings: Settings, learning_rate: float) -> Optimizer:
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    groups = _groups(trained, settings.weight_decay)
    fused = all(parameter.device.type in FUSED_DEVICES for parameter in trained)
    match settings.optimizer:
        case OptimizerName.ADAMW:
            return AdamW(groups, lr=learning_rate, fused=fused)
        case OptimizerName.SGD:
            has_parts = any(isinstance(parameter, DTensor) for parameter in trained)  # fused SGD takes no DTensor
            return SGD(groups, lr=learning_rate, momentum=SGD_MOMENTUM, fused=fused and not has_parts)


def _groups(parameters: list[nn.Parameter], weight_decay: float) -> list[dict[str, object]]:
    """Biases and norms have no weight decay. Sharded and whole tensors are in separate groups, because one fused call
    can't take both.
    """
    groups: dict[tuple[float, bool], list[nn.Parameter]] = {}
    for parameter in parameters:
        decay = weight_decay if parameter.ndim > 1 else 0.0
        groups.setdefault((decay, isinstance(parameter, DTensor)), []).append(parameter)
    return [{"params": members, "weight_decay": decay} for (decay, _), members in groups.items()]
