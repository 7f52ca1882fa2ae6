"""The full run's checkpoints and evaluations: what one costs in the trial, at the schedule of the
suite.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.workload import FullRun
from traindyno.core.step_log.line import CHECKPOINT

# Names of phases; a script of one's own may log its checkpoints as "save".
CHECKPOINTS = (CHECKPOINT, "save")
EVALUATIONS = ("evaluate",)
SECONDS_PER_MINUTE = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescheduled:
    """The trial with the full run's schedule in place of its own.

    ``slower`` is the factor of its step time. ``once_seconds`` is the time that the trial spent on
    events of the schedule and that is not in its step time.
    """

    slower: float = 1.0
    once_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """What the trial spent on events of one kind: for one event, for one step, and beside the step
    time.
    """

    per_event: float
    per_step: float
    once_seconds: float


def scheduled_phases(full_run: FullRun | None) -> tuple[str, ...]:
    """Names of the phases of which the full run's schedule says how often they recur."""
    if full_run is None:
        return ()
    checkpoints = CHECKPOINTS if full_run.checkpoint_every_minutes is not None else ()
    evaluations = EVALUATIONS if full_run.evaluate_every_steps is not None else ()
    return checkpoints + evaluations


def reschedule(result: RunResult) -> Rescheduled | None:
    """The trial at the full run's schedule.

    None if the full run has checkpoints or evaluations, and the trial shows none: their cost is
    unknown.
    """
    measured = result.measured
    given = result.full_run
    if given is None or measured is None or measured.throughput is None:
        return Rescheduled()
    step = rest = 1 / measured.throughput.steps_per_second
    once = added = checkpoint_share = 0.0
    if given.checkpoint_every_minutes is not None:
        seen = _seen_checkpoints(measured)
        if seen is None:
            return None
        rest = rest - seen.per_step
        once = once + seen.once_seconds
        checkpoint_share = seen.per_event / (given.checkpoint_every_minutes * SECONDS_PER_MINUTE)
    if given.evaluate_every_steps is not None:
        seen = _seen_evaluations(result, measured)
        if seen is None:
            return None
        rest = rest - seen.per_step
        once = once + seen.once_seconds
        added = seen.per_event / given.evaluate_every_steps
    return Rescheduled(slower=(rest + added) * (1 + checkpoint_share) / step, once_seconds=once)


def checkpoint_seconds(result: RunResult) -> float | None:
    """Between two checkpoints of the full run; None if it writes none, as far as suite and trial
    show.

    What the suite says of the full run counts first, then checkpoints in the log: a script decides
    itself when it writes them. A checkpoint that is only written on SIGTERM does not count: it may
    not be complete within 120 s.
    """
    if result.full_run is not None and result.full_run.checkpoint_every_minutes is not None:
        return result.full_run.checkpoint_every_minutes * SECONDS_PER_MINUTE
    throughput = result.throughput
    if result.measured is None or throughput is None:
        return None
    logged = (
        event.steps_between for event in result.measured.recurring if event.name in CHECKPOINTS
    )
    steps = next(logged, result.checkpoint_every_steps)
    return None if steps is None else steps / throughput.steps_per_second


def _seen_checkpoints(measured: MeasuredRun) -> _Seen | None:
    checkpoints = _seen_events(measured, CHECKPOINTS)
    if checkpoints is None and measured.checkpoint_seconds is not None:
        return _Seen(per_event=measured.checkpoint_seconds, per_step=0.0, once_seconds=0.0)
    return checkpoints


def _seen_evaluations(result: RunResult, measured: MeasuredRun) -> _Seen | None:
    """What the evaluations of the trial took. One at the end of the trial is in no step."""
    evaluations = _seen_events(measured, EVALUATIONS)
    seconds = sum(result.phases_seconds.get(name, 0.0) for name in EVALUATIONS)
    if evaluations is None and measured.evaluations and seconds > 0:
        return _Seen(
            per_event=seconds / len(measured.evaluations), per_step=0.0, once_seconds=seconds
        )
    return evaluations


def _seen_events(measured: MeasuredRun, names: Sequence[str]) -> _Seen | None:
    recurring = [event for event in measured.recurring if event.name in names]
    once = [event.seconds for event in measured.one_time if event.name in names]
    count = sum(event.count for event in recurring) + len(once)
    if not count:
        return None
    total = sum(event.seconds * event.count for event in recurring) + sum(once)
    return _Seen(
        per_event=total / count,
        per_step=sum(event.seconds_per_step for event in recurring),
        once_seconds=sum(once),
    )
