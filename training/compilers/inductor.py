"""torch.compile with its default backend."""

from typing import cast

import torch
from torch import nn
from torch._dynamo.callback import CallbackArgs, on_compile_end, on_compile_start

from traindyno.callbacks import StepLog
from traindyno.callbacks.clock import now
from training.accelerators import Accelerator
from training.accelerators.choice import cuda_or_cpu
from training.compilers import Compiler
from training.topology import Topology


class Inductor:
    def accelerator(self, topology: Topology) -> Accelerator:
        return cuda_or_cpu(topology)

    def compile(self, module: nn.Module) -> nn.Module:
        return cast("nn.Module", torch.compile(module))

    def log_compilations(self, step_log: StepLog) -> None:
        began = [0.0]  # dynamo reports the outermost compilation only, so one is open at a time

        @on_compile_start
        def _begin(_arguments: CallbackArgs) -> None:
            began[0] = now()

        @on_compile_end
        def _end(arguments: CallbackArgs) -> None:
            facts = {"trigger": arguments.callback_trigger.name.lower(), "compile_id": arguments.compile_id}
            step_log.add_phase("compile", began[0], now(), facts)


def build() -> Compiler:
    return Inductor()
