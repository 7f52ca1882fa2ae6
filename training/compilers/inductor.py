"""torch.compile with its default backend."""

import os
import shutil
from contextlib import AbstractContextManager
from typing import cast

import torch
from torch import nn
from torch._dynamo.callback import CallbackArgs, on_compile_end, on_compile_start
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.exc import InvalidCxxCompiler

from traindyno.callbacks import StepLogger
from traindyno.callbacks.clock import now
from training.accelerators import Accelerator, cuda_or_cpu
from training.compilers import ModelCompiler
from training.errors import MissingFromImage
from training.process.process_group import Topology


def is_recompilation(compile_id: str) -> bool:
    """Whether a frame is compiled once more.

    ``3/0`` is the first compilation of frame 3, ``3/1`` its next one because a guard failed.
    """
    return compile_id.partition("_")[0].rpartition("/")[2] != "0"


class Inductor(ModelCompiler):
    def accelerator(self, topology: Topology) -> Accelerator:
        accelerator = cuda_or_cpu(topology)
        require_host_compiler(accelerator.device)
        return accelerator

    def compile(self, module: nn.Module) -> nn.Module:
        return cast("nn.Module", torch.compile(module))

    def eagerly(self) -> AbstractContextManager[None]:
        stance: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
        return stance

    def log_compilations(self, step_log: StepLogger) -> None:
        began = [0.0]  # dynamo reports the outermost compilation only, so one is open at a time

        @on_compile_start
        def _begin(_arguments: CallbackArgs) -> None:
            began[0] = now()

        @on_compile_end
        def _end(arguments: CallbackArgs) -> None:
            facts = {
                "trigger": arguments.callback_trigger.name.lower(),
                "compile_id": arguments.compile_id,
                "is_recompilation": is_recompilation(arguments.compile_id),
            }
            step_log.add_phase("compile", began[0], now(), facts)


def require_host_compiler(device: torch.device) -> None:
    """Called before anything is loaded: torch.compile itself fails only in the first step, with a
    long trace.
    """
    if device.type == "cpu":
        try:
            get_cpp_compiler()
        except InvalidCxxCompiler as error:
            raise MissingFromImage(
                _lacks("a C++ compiler (g++, or the one that CXX names)")
            ) from error
    elif not os.environ.get("CC") and not any(map(shutil.which, ("gcc", "clang"))):
        raise MissingFromImage(
            _lacks("a C compiler (gcc, clang, or the one that CC names) for Triton")
        )


def _lacks(program: str) -> str:
    return (
        f"compiler inductor needs {program}, which this environment lacks: install it, take an "
        "image that has it, or set compiler none"
    )
