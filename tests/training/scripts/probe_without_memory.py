"""The built-in program, in which the probes of one rank run out of memory: where batches are held,
or at a step.
"""

import os
from collections.abc import Callable
from itertools import count
from typing import Any

import torch

from training.main import main
from training.run import probes

FAILING_RANK, PLACE = os.environ["TEST_FAILS_AT"].split()
STEPS = map(str, count(1))


def failing(function: Callable[..., Any], place: Callable[[], str]) -> Callable[..., Any]:
    def fail_or_call(*arguments: Any, **options: Any) -> Any:
        if place() == PLACE and os.environ["RANK"] == FAILING_RANK:
            raise torch.OutOfMemoryError("injected")
        return function(*arguments, **options)

    return fail_or_call


vars(probes).update(
    held_batches=failing(vars(probes)["held_batches"], lambda: "holding"),
    one_step=failing(vars(probes)["one_step"], lambda: next(STEPS)),
)
main()
