"""torch.compile with its default backend."""

import os
import shutil
from contextlib import AbstractContextManager
from typing import cast

import torch
from torch import nn
from torch._inductor.cpp_builder import get_cpp_compiler
from torch._inductor.exc import InvalidCxxCompiler

from traindyno.callbacks import StepLogger
from training.accelerators import Accelerator, cuda_or_cpu
from training.compilers import ModelCompiler, dynamo
from training.errors import MissingFromImage
from training.process.topology import Topology


class Inductor:
    def accelerator(self, topology: Topology) -> Accelerator:
        accelerator = cuda_or_cpu(topology)
        require_host_compiler(accelerator.device)
        return accelerator

    def compile(self, module: nn.Module) -> nn.Module:
        return cast("nn.Module", torch.compile(module))

    def eagerly(self) -> AbstractContextManager[None]:
        return dynamo.eagerly()

    def log_compilations(self, step_log: StepLogger) -> None:
        dynamo.log_compilations(step_log)


def require_host_compiler(device: torch.device) -> None:
    """Called before anything is loaded: torch.compile itself fails only in the first step, with a long trace."""
    if device.type == "cpu":
        try:
            get_cpp_compiler()
        except InvalidCxxCompiler as error:
            raise MissingFromImage(_lacks("a C++ compiler (g++, or the one that CXX names)")) from error
    elif not os.environ.get("CC") and not any(map(shutil.which, ("gcc", "clang"))):
        raise MissingFromImage(_lacks("a C compiler (gcc, clang, or the one that CC names) for Triton"))


def _lacks(program: str) -> str:
    return (
        f"compiler inductor needs {program}, which this environment lacks: install it, take an image that has it, or "
        "set compiler none"
    )


def build() -> ModelCompiler:
    return Inductor()
