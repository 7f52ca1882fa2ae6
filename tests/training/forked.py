"""Groups of processes that are forked from one that has imported PyTorch: each costs milliseconds,
not seconds.
"""

import multiprocessing
import os
import pickle
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

from localcloud.ports import LOOPBACK, free_port

# Every process would otherwise import these again, late.
PRELOADED = [
    "tests.training.checkpointed",
    "transformers.models.gpt2.modeling_gpt2",
    *(f"training.strategies.{name}" for name in ("ddp", "zero1", "mesh")),
    "torch._dynamo",
]
LIMIT_SECONDS = 120.0

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(PRELOADED)


def run_group(work: Callable[..., Any], *arguments: Any, processes: int = 1) -> list[Any]:
    """What ``work`` returned in each process, by rank; the process group is the environment's, as
    under torchrun.
    """
    port = free_port()
    started = []
    for rank in range(processes):
        receiving, sending = _context.Pipe()
        place = {
            "RANK": str(rank),
            "WORLD_SIZE": str(processes),
            "LOCAL_RANK": str(rank),
            "LOCAL_WORLD_SIZE": str(processes),
            "MASTER_ADDR": LOOPBACK,
            "MASTER_PORT": str(port),
        }
        process = _context.Process(target=_run, args=(work, arguments, place, sending))
        process.start()
        sending.close()
        started.append((process, receiving))
    try:
        return [_answer(receiving) for _, receiving in started]
    finally:
        for _, receiving in started:
            receiving.close()
        for process, _ in started:
            process.join(LIMIT_SECONDS)
            process.kill()


def _answer(receiving: Connection) -> Any:
    assert receiving.poll(LIMIT_SECONDS), "a process of the group did not answer in time"
    return pickle.loads(receiving.recv_bytes())


def _run(
    work: Callable[..., Any], arguments: tuple[Any, ...], place: dict[str, str], sending: Connection
) -> None:
    os.environ |= {
        **place,
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
    }
    multiprocessing.set_start_method(
        "fork", force=True
    )  # jobs fork the loader's workers, too, which need no imports
    # pickle sends values: multiprocessing would pass tensors by handles of this process, which
    # ends.
    sending.send_bytes(pickle.dumps(work(*arguments)))
    sending.poll(
        LIMIT_SECONDS
    )  # process 0 holds the group's store: it stays until every process has answered
    # The training loop ends in the same way: Python's own teardown waits for peers.
    os._exit(0)
