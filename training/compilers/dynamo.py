"""The compilations that torch.compile's frontend reports, for every backend, and how to run without it."""

from contextlib import AbstractContextManager

import torch
from torch._dynamo.callback import CallbackArgs, on_compile_end, on_compile_start

from traindyno.callbacks import StepLogger
from traindyno.callbacks.clock import now


def eagerly() -> AbstractContextManager[None]:
    stance: AbstractContextManager[None] = torch.compiler.set_stance("force_eager")
    return stance


def log_compilations(step_log: StepLogger) -> None:
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


def is_recompilation(compile_id: str) -> bool:
    """``3/0`` is the first compilation of frame 3, ``3/1`` its next one because a guard failed."""
    return compile_id.partition("_")[0].rpartition("/")[2] != "0"
