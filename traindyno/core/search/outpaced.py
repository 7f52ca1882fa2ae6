"""Whether a run of a shared job is so far behind the best one before it that it can't win. Runs on Python 3.8 (frozen
images), with the standard library only: the job's parent process decides by it while the run goes on.

Runs of one job have one type, number and draw of hosts, so that the shortest time is also the lowest cost, and the
hosts' speed cancels. Runs are compared by the seconds per sample of the global batch. Goals of quality are not judged
so: a slower step may need fewer of them.
"""

from math import hypot, sqrt
from typing import Any, Dict, NamedTuple, Optional, Sequence

#: The first steps compile, allocate and open files: they are part of the start.
WARM_UP_STEPS = 2
#: The fewest steps after them.
LEAST_STEPS = 5
#: Later steps say nothing new, and reading them costs the run's host time.
MOST_STEPS = 1000
#: A run is outpaced when it is behind by more than both: this share, and so many standard errors.
LEAST_BEHIND, STANDARD_ERRORS = 0.1, 3.0
#: A standard error from few steps is uncertain: Student's t has the same tail at three times these factors.
FEW_STEPS = (2.5, 9.0)


class Pace(NamedTuple):
    """What a run's steps so far say. ``standard_error`` is that of ``seconds_per_sample``, from step to step.

    ``startup_seconds``: the run's own time until the steps that are counted, its warm-up steps included. ``steps``: how
    many are counted.
    """

    seconds_per_sample: float
    standard_error: float
    startup_seconds: float
    steps: int

    def seconds_of(self, samples: Optional[float]) -> float:
        """Seconds for ``samples`` including start-up, or per sample if ``samples`` is None."""
        return self.seconds_per_sample if samples is None else self.startup_seconds + samples * self.seconds_per_sample

    def error_of(self, samples: Optional[float]) -> float:
        """What ``seconds_of`` may be off by: three standard errors, more where they come from few steps."""
        degrees = self.steps - 1
        widening = 1 + FEW_STEPS[0] / degrees + FEW_STEPS[1] / degrees**2
        return STANDARD_ERRORS * widening * self.standard_error * (1.0 if samples is None else samples)


def pace_of(step_seconds: Sequence[float], samples_per_step: float, startup_seconds: float = 0.0) -> Optional[Pace]:
    """None before five steps after the warm-up. ``step_seconds``: of all steps so far, in their order.

    ``samples_per_step``: the global batch. ``startup_seconds``: from the run's begin to its first step.
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
    )


def is_outpaced(run: Pace, best: Pace, samples: Optional[float] = None) -> bool:
    """``best``: the best of the runs that ended before in the job; a run is never judged by a later one.

    ``samples``: of the whole workload, where the goal counts the start; None where it counts the rate alone.
    """
    behind = run.seconds_of(samples) - best.seconds_of(samples)
    return behind > max(LEAST_BEHIND * best.seconds_of(samples), _error(run, best, samples))


def least_ratio(run: Pace, best: Pace, samples: Optional[float] = None) -> float:
    """The bound of an outpaced run: its time ÷ the best run's, as near to 1 as the standard errors allow."""
    return (run.seconds_of(samples) - _error(run, best, samples)) / best.seconds_of(samples)


def bound_of(run: Pace, best: Pace, by: str, samples: Optional[float] = None) -> Dict[str, Any]:
    """What the end of an outpaced run holds (``core/jobs/run_end.py``). ``by``: the run that is ahead."""
    return {
        "by": by,
        "steps": run.steps,
        "least_ratio": least_ratio(run, best, samples),
        "least_seconds_per_sample": run.seconds_per_sample - run.error_of(None),
    }


def _error(run: Pace, best: Pace, samples: Optional[float]) -> float:
    return hypot(run.error_of(samples), best.error_of(samples))
