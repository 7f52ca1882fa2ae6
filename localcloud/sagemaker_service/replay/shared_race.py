"""Which simulated runs of a shared job can't win, by the rule of the job's parent."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from localcloud.sagemaker_service.replay.shared_work import SharedRun
from localcloud.sagemaker_service.replay.simulated_log import step_seconds
from traindyno.core.jobs.bound import Bound
from traindyno.core.search.outpaced import LEAST_STEPS, MOST_STEPS, WARM_UP_STEPS, Pace, bound_of, is_outpaced, pace_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Outpaced:
    """``last_step``: the first step that the run does not do."""

    last_step: int
    bound: Bound


def pace_after(run: SharedRun, first_step: int, steps: int) -> Pace | None:
    seconds = list(islice(step_seconds(run.trace, run.job.name), first_step, first_step + steps))
    samples = (run.trace.samples_per_step or 0) * run.work.world_size or run.work.global_batch_size
    return pace_of(seconds, samples, run.trace.load_seconds + run.trace.compile_seconds)


def whole_pace(run: SharedRun) -> Pace | None:
    """Of a run that completed."""
    return pace_after(run, 0, min(run.fate.last_step, MOST_STEPS))


def find_outpaced(run: SharedRun, first_step: int, paces: Mapping[str, Pace], samples: float) -> Outpaced | None:
    """``paces``: of the runs that completed before. The run is looked at whenever its steps have doubled."""
    if not paces:
        return None
    by = min(paces, key=lambda run_id: paces[run_id].seconds_of(samples))
    steps, most = WARM_UP_STEPS + LEAST_STEPS, min(run.fate.last_step - first_step - 1, MOST_STEPS)
    while steps <= most:
        own = pace_after(run, first_step, steps)
        if own is not None and is_outpaced(own, paces[by], samples):
            return Outpaced(last_step=first_step + steps, bound=Bound(**bound_of(own, paces[by], by, samples)))
        steps *= 2
    return None
