"""PyTorch/XLA: a device, and no wrapper around the model."""

from traindyno.callbacks import StepLogger
from training.accelerators import Accelerator
from training.accelerators.xla import Xla
from training.compilers import ModelCompiler
from training.compilers.none import NoCompiler
from training.process.process_group import Topology


class XlaCompiler(NoCompiler):
    def __init__(self) -> None:
        self._accelerator = Xla()

    def accelerator(self, topology: Topology) -> Accelerator:
        return self._accelerator

    def log_compilations(self, step_log: StepLogger) -> None:
        self._accelerator.observe_compilations(lambda begin, end: step_log.add_phase("compile", begin, end, {}))


def build() -> ModelCompiler:
    return XlaCompiler()
