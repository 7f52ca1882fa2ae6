"""TorchNeuron's torch.compile backend on its own device. Never run: written from its documentation."""

from typing import cast

import torch
from torch import nn

from training.accelerators import Accelerator
from training.accelerators.neuron import Neuron
from training.compilers import ModelCompiler
from training.compilers.inductor import Inductor
from training.process.process_group import Topology


class NeuronCompiler(Inductor):
    def accelerator(self, topology: Topology) -> Accelerator:
        return Neuron()

    def compile(self, module: nn.Module) -> nn.Module:
        return cast("nn.Module", torch.compile(module, backend="neuron"))


def build() -> ModelCompiler:
    return NeuronCompiler()
