"""The compilers of a run's model. To add one: a module here that defines ``build``, and a line below."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Protocol

from torch import nn

from traindyno.callbacks import StepLogger
from traindyno.core.suite.choices import Compiler
from training.accelerators import Accelerator
from training.process.process_group import Topology

MODULES = {
    Compiler.NONE: "training.compilers.none",
    Compiler.INDUCTOR: "training.compilers.inductor",
    Compiler.XLA: "training.compilers.xla",
    Compiler.NEURON: "training.compilers.neuron",
}


class ModelCompiler(Protocol):
    """It also chooses the device, because some compilers need their own."""

    def accelerator(self, topology: Topology) -> Accelerator: ...

    def compile(self, module: nn.Module) -> nn.Module:
        """Called by the strategy on what this process runs: the whole model, or each of its stages."""

    def eagerly(self) -> AbstractContextManager[None]:
        """The context in which a compiled module runs as if it were not: each shape of a batch would be compiled."""

    def log_compilations(self, step_log: StepLogger) -> None:
        """Write each later compilation into the log as a phase ``compile``."""


def build_compiler(name: Compiler) -> ModelCompiler:
    build: Callable[[], ModelCompiler] = import_module(MODULES[name]).build
    return build()
