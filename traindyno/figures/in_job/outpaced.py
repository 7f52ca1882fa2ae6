"""Whether a run of a race's first round is so far behind the best one before it in its job that it
can't win. Runs on Python 3.8 (frozen images), with the standard library only. One rule,
``ended_by``, for the job's parent process, for the simulated service and for simulations.

Runs of one job have one type, number and draw of hosts, so that the shortest time is also the
lowest cost, and the hosts' speed cancels. Runs are compared by the seconds per sample of the global
batch. Goals of quality are not judged so: a slower step may need fewer of them.
"""

from math import hypot, sqrt
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Sequence

from traindyno.figures.in_job.run_scatter import NONE_NEARER, RunScatter

#: The first steps compile, allocate and open files: they are part of the start.
WARM_UP_STEPS = 2
#: The fewest steps after them.
LEAST_STEPS = 5
#: Later steps say nothing new, and reading them costs the run's host time.
MOST_STEPS = 1000
#: A run is outpaced when it is behind by more than this share, and by more than is said of it
#: (``NONE_NEARER``) beyond so many standard errors.
LEAST_BEHIND = 0.1
STANDARD_ERRORS = 3.0
#: A standard error from few steps is uncertain: Student's t has the same tail at three times these
#: factors.
FEW_STEPS = (2.5, 9.0)
#: A step is overdue when it lasts so many times as long as the longest of the best run, and so many
#: seconds more: a stall of less is none of a cell's own.
TIMES_BEST = 2.0
STALL_SECONDS = 30.0


class Pace(NamedTuple):
    """What a run's steps so far say.

    ``standard_error`` is that of ``seconds_per_sample``, from step to step.

    ``startup_seconds``: the run's own time until the steps that are counted, its warm-up steps
    included. ``steps``: how many are counted. ``longest_seconds``: between the ends of two of them.

    ``quick_seconds_per_sample``: the lower quartile, which a stall does not move; 0 is unknown.
    """

    seconds_per_sample: float
    standard_error: float
    startup_seconds: float
    steps: int
    samples_per_step: float = 1.0
    longest_seconds: float = 0.0
    quick_seconds_per_sample: float = 0.0

    def seconds_of(self, samples: float) -> float:
        """Seconds for ``samples``, the start included."""
        return self.startup_seconds + samples * self.seconds_per_sample

    @property
    def error(self) -> float:
        """What ``seconds_per_sample`` may be off by: three standard errors, more where they come
        from few steps.
        """
        if not self.standard_error:
            return 0.0
        degrees = self.steps - 1
        widening = 1 + FEW_STEPS[0] / degrees + FEW_STEPS[1] / degrees**2
        return STANDARD_ERRORS * widening * self.standard_error


def pace_of(
    step_seconds: Sequence[float], samples_per_step: float, startup_seconds: float = 0.0
) -> Optional[Pace]:
    """None before five steps after the warm-up.

    ``step_seconds``: of all steps so far, in their order.

    ``samples_per_step``: the global batch. ``startup_seconds``: from the run's begin to its first
    step.
    """
    counted = step_seconds[WARM_UP_STEPS:]
    count = len(counted)
    if count < LEAST_STEPS or samples_per_step <= 0 or min(counted) < 0 or sum(counted) <= 0:
        return None
    mean = sum(counted) / count
    variance = sum((seconds - mean) ** 2 for seconds in counted) / (count - 1)
    return Pace(
        seconds_per_sample=mean / samples_per_step,
        standard_error=sqrt(variance / count) / samples_per_step,
        startup_seconds=startup_seconds + sum(step_seconds[:WARM_UP_STEPS]),
        steps=count,
        samples_per_step=samples_per_step,
        longest_seconds=max(counted),
        quick_seconds_per_sample=sorted(counted)[count // 4] / samples_per_step,
    )


def most_seconds(best: Pace, samples_per_step: float, compile_seconds: float = 0.0) -> float:
    """For how long a run may log no step after its warm-up.

    ``compile_seconds``: its longest compilation so far.
    """
    larger = max(1.0, samples_per_step / best.samples_per_step)
    return TIMES_BEST * larger * best.longest_seconds + compile_seconds + STALL_SECONDS


def ended_by(
    step_seconds: Sequence[float],
    samples_per_step: float,
    earlier: Mapping[str, Pace],
    samples: float,
    scatter: RunScatter,
    *,
    overdue_seconds: Optional[float] = None,
) -> Optional[Dict[str, Any]]:
    """The bound of a run that is ended (``core/jobs/run_end.py``); None: it goes on.

    It is judged after seven steps, and whenever their number has doubled.

    ``earlier``: of the runs that ended before in the job, by their ids; a run is never judged by a
    later one. ``samples``: of the whole workload. ``overdue_seconds``: how long the step in
    progress lasts, if it is overdue.
    """
    by = fastest_of(earlier, samples)
    if by is None:
        return None
    judged: List[Optional[Pace]] = []
    look = WARM_UP_STEPS + LEAST_STEPS
    while look <= min(len(step_seconds), MOST_STEPS):
        judged.append(pace_of(step_seconds[:look], samples_per_step))
        look *= 2
    if overdue_seconds is not None:
        seconds = [*step_seconds[WARM_UP_STEPS:], overdue_seconds]
        rate = sum(seconds) / len(seconds) / samples_per_step
        judged.append(Pace(rate, standard_error=0.0, startup_seconds=0.0, steps=len(seconds)))
    for own in judged:
        if own is not None and is_outpaced(own, earlier[by], samples, scatter):
            return {
                "by": by,
                "steps": own.steps,
                "least_ratio": least_ratio(own, earlier[by], samples, scatter),
            }
    return None


def fastest_of(earlier: Mapping[str, Pace], samples: float) -> Optional[str]:
    return min(earlier, key=lambda run_id: earlier[run_id].seconds_of(samples), default=None)


class EarlyEnd(NamedTuple):
    """After ``steps`` whole steps, and ``overdue_seconds`` of the next one."""

    steps: int
    overdue_seconds: float
    bound: Dict[str, Any]


def early_end(
    step_seconds: Sequence[float],
    samples_per_step: float,
    earlier: Mapping[str, Pace],
    samples: float,
    scatter: RunScatter,
) -> Optional[EarlyEnd]:
    """Where a run that would have these steps is ended; None: it does all of them."""
    by = fastest_of(earlier, samples)
    if by is None:
        return None
    most = most_seconds(earlier[by], samples_per_step)
    last = len(step_seconds) - 1
    overdue = next(
        (step for step in range(WARM_UP_STEPS, last + 1) if step_seconds[step] > most), None
    )
    whole = step_seconds[: last if overdue is None else overdue]
    bound = ended_by(whole, samples_per_step, earlier, samples, scatter)
    if bound is not None:
        return EarlyEnd(WARM_UP_STEPS + int(bound["steps"]), 0.0, bound)
    if overdue is not None:
        bound = ended_by(whole, samples_per_step, earlier, samples, scatter, overdue_seconds=most)
    return None if bound is None else EarlyEnd(len(whole), most, bound)


def is_outpaced(run: Pace, best: Pace, samples: float, scatter: RunScatter) -> bool:
    """Only the best run's start counts: a first run pays in its own what a later one of its cell
    may not.
    """
    least_behind = scatter.within() if scatter.has_stalls else LEAST_BEHIND
    is_behind = _seconds_beside(run, best, samples, scatter) > (
        (1 + least_behind) * best.seconds_of(samples)
    )
    return is_behind and least_ratio(run, best, samples, scatter) > 1 + NONE_NEARER


def least_ratio(run: Pace, best: Pace, samples: float, scatter: RunScatter) -> float:
    """The run's time ÷ the best run's, as near to 1 as the spread of steps and of runs allows."""
    of_runs = STANDARD_ERRORS * sqrt(2.0) * scatter.share * best.seconds_of(samples)
    error = hypot(samples * run.error, samples * best.error, of_runs)
    own = _seconds_beside(run, best, samples, scatter)
    return (own - error) / best.seconds_of(samples)


def _seconds_beside(run: Pace, best: Pace, samples: float, scatter: RunScatter) -> float:
    """Seconds of the run's steps; where other work may stall them, no more than its quick steps
    take beside those of the best run.
    """
    pace = run.seconds_per_sample
    quick = run.quick_seconds_per_sample
    best_quick = best.quick_seconds_per_sample
    if scatter.has_stalls and quick and best_quick:
        pace = min(pace, quick / best_quick * best.seconds_per_sample)
    return samples * pace
