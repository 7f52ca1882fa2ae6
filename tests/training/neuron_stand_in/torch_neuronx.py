"""``torch_neuronx.trace`` with the signature of the AWS Neuron documentation; its graphs take one set of shapes only.

Where torch_xla is installed, XLA compiles the graph, as in AWS's library, but for the CPU; elsewhere TorchScript does.
"""

import copy
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import torch

Graph = Callable[..., torch.Tensor]


def trace(
    func: torch.nn.Module,
    example_inputs: tuple[torch.Tensor, ...],
    *_: Any,
    input_output_aliases: dict[Any, Any] | None = None,
    compiler_workdir: str | None = None,
    compiler_args: str | list[str] | None = None,
    partitioner_config: Any = None,
    inline_weights_to_neff: bool = True,
    cpu_backend: bool = False,
) -> Graph:
    with torch.inference_mode():
        graph = _by_xla(func) if find_spec("torch_xla") else torch.jit.trace(func, example_inputs, check_trace=False)
        graph(*example_inputs)
    expected = [each.shape for each in example_inputs]

    def run(*inputs: torch.Tensor) -> torch.Tensor:
        found = [each.shape for each in inputs]
        if found != expected:
            raise RuntimeError(f"the graph takes {expected}, got {found}")
        return graph(*inputs)

    return run


def _by_xla(func: torch.nn.Module) -> Graph:
    import torch_xla  # type: ignore[import-not-found,unused-ignore]

    device = torch_xla.device()
    placed = copy.deepcopy(func).to(device)
    return lambda *inputs: placed(*(each.to(device) for each in inputs)).cpu()
