"""What a process does between the steps that it logs: it loads data, or trains in steps that are not logged."""

import sys
import time
from typing import Any, Dict

from traindyno.core.step_log.line import CPU_SECONDS, UNLOGGED_STEPS, WAIT_SECONDS

# A log that lacks a smaller share of the steps shows their rate.
MOST_UNLOGGED_SHARE = 0.02


class BetweenSteps:
    """Counts the steps of optimizers between the logged steps, and the CPU time of the thread that trains.

    An optimizer that steps in logged steps and between them trains without logging. Where none steps in logged steps,
    the one step after each belongs to it, and more don't. Versions of torch without the hook count none.
    """

    def __init__(self) -> None:
        self._cpu_seconds = self._wait_seconds = 0.0
        self._is_open, self._gaps, self._written, self._ended_cpu = False, -1, 0, time.thread_time()
        # By optimizer
        self._inside: Dict[int, int] = {}
        self._outside: Dict[int, int] = {}
        self._since_last: Dict[int, int] = {}
        register = getattr(sys.modules.get("torch.optim.optimizer"), "register_optimizer_step_post_hook", None)
        if register is not None:
            register(self._note)

    def _note(self, optimizer: Any, *_: Any) -> None:
        counts = self._inside if self._is_open else self._since_last
        counts[id(optimizer)] = counts.get(id(optimizer), 0) + 1

    def begin_step(self, wait_seconds: float) -> None:
        self._wait_seconds += wait_seconds
        self._cpu_seconds += time.thread_time() - self._ended_cpu
        self.count()
        self._gaps += 1
        self._is_open = True

    def count(self) -> None:
        """The steps of optimizers since the last logged step or phase were none of a phase."""
        for each, count in self._since_last.items():
            self._outside[each] = self._outside.get(each, 0) + count
        self._since_last.clear()

    def forget(self) -> None:
        """A step or a phase has ended: what was done in it is logged."""
        self._since_last.clear()
        self._is_open, self._ended_cpu = False, time.thread_time()

    @property
    def is_due(self) -> bool:
        """Whether the log has to say that it lacks steps, before it ends: the process may be killed."""
        unlogged = self._unlogged()
        return bool(unlogged) and unlogged >= 1.25 * self._written

    def facts(self) -> Dict[str, Any]:
        self._written = self._unlogged()
        return {UNLOGGED_STEPS: self._written, CPU_SECONDS: self._cpu_seconds, WAIT_SECONDS: self._wait_seconds}

    def _unlogged(self) -> int:
        """0 if they are too few to matter."""
        if self._inside:
            most = max((self._outside.get(each, 0) for each in self._inside), default=0)
        else:
            most = max(self._outside.values(), default=0) - self._gaps
        return most if most > max(1.0, MOST_UNLOGGED_SHARE * self._gaps) else 0
