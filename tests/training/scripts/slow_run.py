"""The built-in program with a slow loader and a slow exchange of gradients: each takes a stated
time in a step, its own work included, so that what is injected is also true on a busy host.
"""

import os
import time

import torch
from torch import nn
from torch.distributed import GradBucket, ProcessGroup  # type: ignore[attr-defined]
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.futures import Future
from torch.nn.parallel import DistributedDataParallel

from training.data.batch import Batch
from training.data.loader import StepBatches
from training.main import main
from training.models.objective import Objective
from training.strategies.ddp import DataParallel

LOADER_SECONDS = float(os.environ["TEST_LOADER_SECONDS"])
EXCHANGE_SECONDS = float(os.environ["TEST_EXCHANGE_SECONDS"])
SLOW_RANKS = os.environ["TEST_SLOW_RANKS"].split()

make_batches, wrap = StepBatches.__getitem__, DataParallel._wrap


def make_batches_slowly(batches: StepBatches, step: int) -> list[Batch]:
    end = time.monotonic() + LOADER_SECONDS
    made = make_batches(batches, step)
    if os.environ["RANK"] in SLOW_RANKS:
        time.sleep(max(0.0, end - time.monotonic()))
    return made


def wrap_with_slow_exchange(strategy: DataParallel, objective: Objective) -> nn.Module:
    def exchange(state: ProcessGroup, bucket: GradBucket) -> Future[torch.Tensor]:
        if bucket.is_last():
            time.sleep(EXCHANGE_SECONDS)
        return allreduce_hook(state, bucket)

    wrapped = wrap(strategy, objective)
    assert isinstance(wrapped, DistributedDataParallel)
    wrapped.register_comm_hook(None, exchange)
    return wrapped


StepBatches.__getitem__ = make_batches_slowly  # type: ignore[method-assign]
DataParallel._wrap = wrap_with_slow_exchange  # type: ignore[method-assign, assignment]
main()
