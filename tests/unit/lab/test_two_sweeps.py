"""Two sweeps at once, as after a call by hand, leave what one leaves: the second one begins at each
call that the first one makes.
"""

import time
from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest

from lambdas.reconcile_runs import handler as reconcile_runs
from tests.unit.lab_in_memory import (
    EXECUTION,
    NOW,
    SETTINGS,
    MemoryExecutions,
    MemoryLab,
    Unhurried,
    make_lab,
    no_sleep,
    set_environment,
)
from tests.unit.serving_in_memory import MemoryServing
from tests.unit.throttled_calls import METHODS, standing_clock
from traindyno.aws import clients
from traindyno.lab import stop_runs
from traindyno.lab.submit_run import submit_run

LATER = NOW + 500


def make_swept_lab(patch: pytest.MonkeyPatch, *, is_over: bool) -> MemoryLab:
    """A job has ended without an event; another one works, in an execution that may be over."""
    lab, (first, second, *_) = make_lab()
    for run in (first, second):
        submit_run(
            run, run.run_id, services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep
        )
    lab.jobs.end(next(iter(lab.jobs.jobs)), "Completed")
    executions = MemoryExecutions()
    executions.start(EXECUTION, {})
    if is_over:
        executions.end(EXECUTION, "ABORTED")
        lab.answers.gone |= {first.run_id, second.run_id}  # no task waits any more
    set_environment(patch)
    patch.setattr(reconcile_runs, "connect", lambda _: lab)
    patch.setattr(reconcile_runs, "open_serving", lambda _: MemoryServing().serving)
    patch.setattr(reconcile_runs, "Executions", lambda *_: executions)
    patch.setattr(clients, "stepfunctions", lambda: None)
    patch.setattr(time, "time", lambda: LATER)
    patch.setattr(stop_runs, "time", standing_clock(LATER))
    return lab


class Interruption:
    """Calls ``interrupt`` before the call of the given number, counted over all services.

    A double's use of its own methods is no call.
    """

    def __init__(self, lab: MemoryLab, number: int | None, interrupt: Callable[[], None]) -> None:
        self.count = 0
        self._number = number
        self._interrupt = interrupt
        self._is_inside = False
        for name in METHODS.keys() & vars(lab).keys():
            for method in METHODS[name]:
                service = getattr(lab, name)
                setattr(service, method, self._counted(getattr(service, method)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(call)
        def counted(*arguments: Any, **named: Any) -> Any:
            if self._is_inside:
                return call(*arguments, **named)
            self.count += 1
            if self.count - 1 == self._number:
                self._interrupt()
            self._is_inside = True
            try:
                return call(*arguments, **named)
            finally:
                self._is_inside = False

        return counted


def swept(*, is_over: bool, number: int | None = None) -> tuple[Any, int]:
    """What is left after a sweep, and the calls that it made. ``number``: of the call at which
    another sweep runs.
    """

    def sweep() -> None:
        reconcile_runs.handle({}, Unhurried())

    with pytest.MonkeyPatch.context() as patch:
        lab = make_swept_lab(patch, is_over=is_over)
        calls = Interruption(lab, number, sweep)
        sweep()
    tokens = [token for token, *_ in lab.answers.given]
    assert len(set(tokens)) == len(tokens)
    # A second request to stop a job changes nothing.
    left = lab.table.items, lab.objects.contents, {*lab.jobs.stopped}, sorted(lab.answers.given)
    return left, calls.count


@pytest.mark.parametrize("is_over", [False, True])
def test_whenever_a_second_sweep_begins_nothing_is_lost_or_done_twice(is_over: bool) -> None:
    alone, count = swept(is_over=is_over)
    assert count > 8
    assert (bool(alone[2]), bool(alone[3])) == (is_over, not is_over)
    for number in range(count):
        assert swept(is_over=is_over, number=number)[0] == alone, number
