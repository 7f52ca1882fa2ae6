"""The compilers of a run's model. To add one: a module here with its class, and a line below."""

from contextlib import AbstractContextManager, nullcontext
from pkgutil import resolve_name

from torch import nn

from traindyno.callbacks import StepLogger
from traindyno.core.suite.choices import Compiler
from training.accelerators import Accelerator, cuda_or_cpu
from training.process.process_group import Topology

CLASSES = {
    Compiler.NONE: "training.compilers:ModelCompiler",
    Compiler.INDUCTOR: "training.compilers.inductor:Inductor",
    Compiler.XLA: "training.compilers.xla:XlaCompiler",
    Compiler.NEURON: "training.compilers.neuron:NeuronCompiler",
}


class ModelCompiler:
    """No compiler: PyTorch runs each operation eagerly. The others override what they do.

    It also chooses the device, because some compilers need their own.
    """

    def accelerator(self, topology: Topology) -> Accelerator:
        return cuda_or_cpu(topology)

    def compile(self, module: nn.Module) -> nn.Module:
        """Called by the strategy on what this process runs: the whole model, or each of its
        stages.
        """
        return module

    def eagerly(self) -> AbstractContextManager[None]:
        """The context in which a compiled module runs as if it were not: each shape of a batch
        would be compiled.
        """
        return nullcontext()

    def log_compilations(self, step_log: StepLogger) -> None:
        """Write each later compilation into the log as a phase ``compile``."""


def build_compiler(name: Compiler) -> ModelCompiler:
    compiler: ModelCompiler = resolve_name(CLASSES[name])()
    return compiler
