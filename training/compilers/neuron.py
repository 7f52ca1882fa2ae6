"""TorchNeuron: PyTorch's device for Trainium 2 and 3, and its torch.compile backend.

Never run: written from its documentation.
"""

from importlib import import_module
from typing import cast

import torch
from torch import nn

from training.accelerators import Accelerator
from training.compilers.inductor import Inductor
from training.errors import MissingFromImage
from training.process.process_group import Topology

LIBRARY = "torch_neuronx"


class Neuron(Accelerator):
    name = "neuron"
    process_group_backend = "cpu:gloo,neuron:neuron"

    def __init__(self) -> None:
        try:
            import_module(LIBRARY)  # registers the device, its collectives and its compiler
        except ImportError as error:
            raise MissingFromImage(
                f"compiler neuron needs TorchNeuron ({LIBRARY}), which this environment lacks "
                f"({error}); it runs on ml.trn2 and ml.trn3 instances with images/neuron. "
                "Elsewhere: compiler inductor"
            ) from error
        # torchrun shows each process one core, so that the device needs no number.
        self.device = torch.device("neuron")


class NeuronCompiler(Inductor):
    def accelerator(self, topology: Topology) -> Accelerator:
        return Neuron()

    def compile(self, module: nn.Module) -> nn.Module:
        return cast("nn.Module", torch.compile(module, backend="neuron"))
