"""SIGTERM becomes a checkpoint: all processes agree on the step after which they write it.

The signal reaches the processes at different moments, in different steps. Each process reports its
current step, without waiting for its main thread. All of them run to the latest of these steps:
none is past it, and none waits in a collective for a process that has stopped. A run that is not
stopped sends no message.
"""

import threading
import time

from torch import distributed

from training.errors import RunStopped
from training.process.process_group import Topology

KEY = "traindyno/stop"
AGREEMENT_SECONDS = 10.0


class StopRequest:
    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._lock = threading.Lock()
        self._open_step: int | None = None
        self._is_requested = False
        self._last_step: int | None = None

    def begin(self, step: int) -> None:
        """The main thread begins this step, the first one."""
        with self._lock:
            self._open_step = step

    def request(self) -> bool:
        """Called by the thread that receives the signal; returns whether the main thread will write
        a checkpoint.
        """
        with self._lock:
            if self._open_step is None:
                return False
            self._is_requested = True
            if distributed.is_initialized():
                store = distributed.distributed_c10d._get_default_store()
                store.set(f"{KEY}/{self._topology.rank}", str(self._open_step))
        return True

    def is_due(self, step: int) -> bool:
        """Whether ``step``, which has just ended, is the run's last one. Called after each step."""
        with self._lock:
            if not self._is_requested:
                self._open_step = step + 1
                return False
        if self._last_step is None:
            self._last_step = self._latest_of_all(step)
        return step >= self._last_step

    def end(self) -> None:
        """There is no further step: a signal now ends the process immediately."""
        with self._lock:
            self._open_step = None

    def _latest_of_all(self, step: int) -> int:
        """Raises RunStopped if a process does not report its step in time: it did not receive
        SIGTERM.
        """
        if not distributed.is_initialized():
            return step
        store = distributed.distributed_c10d._get_default_store()
        keys = [f"{KEY}/{rank}" for rank in range(self._topology.world_size)]
        deadline = time.monotonic() + AGREEMENT_SECONDS
        while not store.check(keys):
            if time.monotonic() > deadline:
                raise RunStopped(
                    f"the run was stopped after step {step}; no checkpoint of it was written, "
                    f"because not all {self._topology.world_size} processes received SIGTERM "
                    f"within {AGREEMENT_SECONDS:g} s"
                )
            time.sleep(0.02)
        return max(int(store.get(key)) for key in keys)
