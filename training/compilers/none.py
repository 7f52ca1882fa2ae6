"""No compiler: PyTorch runs each operation eagerly."""

from contextlib import AbstractContextManager, nullcontext

from torch import nn

from traindyno.callbacks import StepLogger
from training.accelerators import Accelerator, cuda_or_cpu
from training.compilers import ModelCompiler
from training.process.process_group import Topology


class NoCompiler:
    def accelerator(self, topology: Topology) -> Accelerator:
        return cuda_or_cpu(topology)

    def compile(self, module: nn.Module) -> nn.Module:
        return module

    def eagerly(self) -> AbstractContextManager[None]:
        return nullcontext()

    def log_compilations(self, step_log: StepLogger) -> None:
        pass


def build() -> ModelCompiler:
    return NoCompiler()
