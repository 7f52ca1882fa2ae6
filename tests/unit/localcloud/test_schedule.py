"""The schedule of simulated jobs: they are taken by their time, and the clock jumps over idle time
only.
"""

import threading

from localcloud.sagemaker_service.clock import Schedule, VirtualClock

HOUR_MS = 3_600_000


class Machine:
    """The machine's clock stands still, so that virtual time passes by jumps only."""

    def __init__(self, *, may_jump: bool) -> None:
        self.clock = VirtualClock(start_ms=1, speed_up=1.0, monotonic=lambda: 0.0)
        self.schedule = Schedule(self.clock, lambda: may_jump)

    def check_at(self, name: str, due_ms: int) -> None:
        self.schedule.wake(name)
        assert self.schedule.take() == name
        self.schedule.done(name, due_ms)

    def take(self) -> str | None:
        """A job is taken after the clock has jumped; None if it does not jump."""
        return self.schedule.take() or self.schedule.take()


def test_jobs_are_taken_by_their_time_and_a_busy_job_only_when_it_is_done() -> None:
    machine = Machine(may_jump=True)
    machine.check_at("late", 2 * HOUR_MS)
    machine.check_at("early", HOUR_MS)
    assert (machine.take(), machine.clock.now_ms()) == ("early", HOUR_MS)
    machine.schedule.wake("early")
    assert machine.take() is None
    machine.schedule.done("early", None)
    assert machine.take() == "early"
    machine.schedule.done("early", None)
    assert (machine.take(), machine.clock.now_ms()) == ("late", 2 * HOUR_MS)


def test_a_job_scheduled_again_is_taken_once() -> None:
    machine = Machine(may_jump=True)
    machine.check_at("twice", HOUR_MS)
    machine.check_at("other", 2 * HOUR_MS)
    machine.schedule.wake("twice")
    assert machine.take() == "twice"
    machine.schedule.done("twice", None)
    # Its entry of the first hour is left, and passed over.
    assert [machine.take(), machine.take()] == [None, "other"]


def test_the_clock_does_not_jump_while_a_request_is_in_progress() -> None:
    machine = Machine(may_jump=False)
    machine.check_at("job", HOUR_MS)
    assert (machine.take(), machine.clock.now_ms()) == (None, 1)


def test_closing_ends_a_wait_for_the_first_job() -> None:
    schedule = Machine(may_jump=True).schedule
    waiting = threading.Thread(target=schedule.take, daemon=True)
    waiting.start()
    schedule.close()
    waiting.join(5)
    assert not waiting.is_alive()
