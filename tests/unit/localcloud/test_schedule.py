"""The schedule of simulated jobs: they are taken by their time, and the clock jumps over idle time only."""

import threading

import pytest

from localcloud.sagemaker_service.clock import NextCheck, Schedule, VirtualClock

HOUR_MS = 3_600_000


class Machine:
    """The machine's clock stands still, so that virtual time passes by jumps only."""

    def __init__(self, *, may_jump: bool) -> None:
        self.clock = VirtualClock(start_ms=1, speed_up=1.0, monotonic=lambda: 0.0)
        self.schedule = Schedule(self.clock, lambda: may_jump)

    def check_at(self, name: str, check: NextCheck) -> None:
        self.schedule.wake(name)
        assert self.schedule.take() == name
        self.schedule.done(name, check)

    def take(self) -> str | None:
        """A job is taken after the clock has jumped; None if it does not jump."""
        return self.schedule.take() or self.schedule.take()


def test_jobs_are_taken_by_their_time_and_a_busy_job_only_when_it_is_done() -> None:
    machine = Machine(may_jump=True)
    machine.check_at("late", NextCheck(due_ms=2 * HOUR_MS))
    machine.check_at("early", NextCheck(due_ms=HOUR_MS))
    assert (machine.take(), machine.clock.now_ms()) == ("early", HOUR_MS)
    machine.schedule.wake("early")
    assert machine.take() is None
    machine.schedule.done("early", None)
    assert machine.take() == "early"
    machine.schedule.done("early", None)
    assert (machine.take(), machine.clock.now_ms()) == ("late", 2 * HOUR_MS)


def test_a_job_that_is_scheduled_again_is_taken_once() -> None:
    machine = Machine(may_jump=True)
    machine.check_at("twice", NextCheck(due_ms=HOUR_MS))
    machine.check_at("other", NextCheck(due_ms=2 * HOUR_MS))
    machine.schedule.wake("twice")
    assert machine.take() == "twice"
    machine.schedule.done("twice", None)
    # Its entry of the first hour is left, and passed over.
    assert [machine.take(), machine.take()] == [None, "other"]


@pytest.mark.parametrize(("may_jump", "is_pool"), [(False, False), (True, True)])
def test_the_clock_does_not_jump_for_a_request_or_to_the_end_of_a_pool(may_jump: bool, is_pool: bool) -> None:
    machine = Machine(may_jump=may_jump)
    machine.check_at("job", NextCheck(due_ms=HOUR_MS, is_pool=is_pool))
    assert (machine.take(), machine.clock.now_ms()) == (None, 1)


def test_closing_ends_a_wait_for_the_first_job() -> None:
    schedule = Machine(may_jump=True).schedule
    waiting = threading.Thread(target=schedule.take, daemon=True)
    waiting.start()
    schedule.close()
    waiting.join(5)
    assert not waiting.is_alive()
