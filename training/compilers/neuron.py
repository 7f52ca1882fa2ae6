"""TorchNeuron's torch.compile backend on its own device. Never run: written from its documentation."""

from contextlib import AbstractContextManager
from typing import cast

import torch
from torch import nn

from traindyno.callbacks import StepLogger
from training.accelerators import Accelerator
from training.accelerators.neuron import Neuron
from training.compilers import ModelCompiler, dynamo
from training.process.topology import Topology


class NeuronCompiler:
    def accelerator(self, topology: Topology) -> Accelerator:
        return Neuron()

    def compile(self, module: nn.Module) -> nn.Module:
        return cast("nn.Module", torch.compile(module, backend="neuron"))

    def eagerly(self) -> AbstractContextManager[None]:
        return dynamo.eagerly()

    def log_compilations(self, step_log: StepLogger) -> None:
        dynamo.log_compilations(step_log)


def build() -> ModelCompiler:
    return NeuronCompiler()
