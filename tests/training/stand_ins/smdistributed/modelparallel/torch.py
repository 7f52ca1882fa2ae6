"""SageMaker's model parallel library v1 as one process sees it that holds the whole model: groups
of one, microbatches.

Every call is bound to its published signature (tests/data/frozen_signatures), so that a script that
passes here passes arguments that the library takes.
"""

import contextlib
import functools
import inspect
import json
from pathlib import Path
from typing import Any

import torch

DATA = (
    Path(__file__).resolve().parents[4]
    / "data"
    / "frozen_signatures"
    / "smdistributed_modelparallel.json"
)
PUBLISHED = json.loads(DATA.read_text())
PARAMETERS = PUBLISHED["parameters"]["values"]
_state: dict[str, Any] = {"settings": None, "is_in_step": False, "model": None}


def _published(function: Any) -> Any:
    """The function behind its published signature. Raises TypeError for any other arguments."""
    (text,) = [
        published["signature"]
        for published in PUBLISHED["signatures"]
        if published["name"] == function.__name__
    ]
    namespace: dict[str, Any] = {}
    exec(f"def called{text}: ...", namespace)
    signature = inspect.signature(namespace["called"])

    @functools.wraps(function)
    def called(*arguments: Any, **keywords: Any) -> Any:
        bound = signature.bind(*arguments, **keywords)
        return function(*bound.args, **bound.kwargs)

    return called


@_published
def init(config: dict[str, Any]) -> None:
    unknown = config.keys() - PARAMETERS.keys()
    if unknown:
        raise ValueError(f"smp.init: unknown {sorted(unknown)}")
    _state["settings"] = config


@_published
def step(function: Any) -> Any:
    @functools.wraps(function)
    def run(*arguments: Any) -> StepOutput:
        count = _state["settings"]["microbatches"]
        parts = [
            argument.chunk(count) if torch.is_tensor(argument) else [argument] * count
            for argument in arguments
        ]
        _state["is_in_step"] = True
        outputs = [function(*microbatch) for microbatch in zip(*parts, strict=True)]
        _state["is_in_step"] = False
        return StepOutput(outputs)

    return run


class StepOutput:
    def __init__(self, outputs: list[Any]) -> None:
        self.outputs = outputs

    def reduce_mean(self) -> Any:
        return torch.stack([output.detach() for output in self.outputs]).mean()


class _Model(torch.nn.Module):
    """Gradients are averaged across microbatches, the library's default."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *arguments: Any, **keywords: Any) -> Any:
        assert _state["is_in_step"], "the model is called within a function that smp.step decorates"
        return self.module(*arguments, **keywords)

    def backward(self, tensors: Any, grad_tensors: Any = None) -> None:
        assert _state["is_in_step"]
        torch.autograd.backward(tensors / _state["settings"]["microbatches"], grad_tensors)

    def get_module(self) -> torch.nn.Module:
        return self.module


@_published
def DistributedModel(module: torch.nn.Module, trace_device: str) -> _Model:
    assert trace_device in ("cpu", "gpu")
    _state["model"] = model = _Model(module)
    return model


@_published
def DistributedOptimizer(optimizer: Any, *_scale: Any, **_dynamic: Any) -> Any:
    return optimizer


@_published
def model_creation(*_settings: Any, **_more: Any) -> Any:
    return contextlib.nullcontext()


@_published
def set_partition(module: torch.nn.Module, partition: int) -> None:
    assert 0 <= partition < pp_size()


@_published
def set_activation_checkpointing(module: torch.nn.Module) -> None:
    assert isinstance(module, torch.nn.Module)


@_published
def save_checkpoint(
    path: str, tag: str, partial: bool, model: Any, *_others: Any, **_more: Any
) -> None:
    folder = Path(path) / f"{tag}_partial" if partial else Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    torch.save(model.module.state_dict(), folder / ("model.pt" if partial else tag))


@_published
def resume_from_checkpoint(path: str, tag: str, partial: bool) -> None:
    assert not partial
    _state["model"].module.load_state_dict(torch.load(Path(path) / tag))


@_published
def barrier(group: Any = None) -> None:
    assert _state["settings"] is not None


def _first() -> int:
    return 0


def _one() -> int:
    return 1


rank = local_rank = tp_rank = pp_rank = dp_rank = rdp_rank = _first
tp_size = pp_size = dp_size = rdp_size = _one
