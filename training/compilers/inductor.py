"""torch.compile with its default backend."""

from typing import cast

import torch
from torch import nn

from traindyno.callbacks import StepLog
from training.accelerators import Accelerator
from training.accelerators.choice import cuda_or_cpu
from training.compilers import Compiler, dynamo
from training.topology import Topology


class Inductor:
    def accelerator(self, topology: Topology) -> Accelerator:
        return cuda_or_cpu(topology)

    def compile(self, module: nn.Module) -> nn.Module:
        return cast("nn.Module", torch.compile(module))

    def log_compilations(self, step_log: StepLog) -> None:
        dynamo.log_compilations(step_log)


def build() -> Compiler:
    return Inductor()
