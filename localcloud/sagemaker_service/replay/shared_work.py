"""The runs of a simulated job that several runs share: how long each takes, and how it ends."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from signal import SIGKILL
from typing import Any

from localcloud.sagemaker_service.jobs.faults import FaultInjector, JobFault
from localcloud.sagemaker_service.jobs.job import TrainingJob
from localcloud.sagemaker_service.jobs.job_work import JobWork, job_of_run, read_work
from localcloud.sagemaker_service.replay.simulated_log import total_steps, training_seconds
from localcloud.sagemaker_service.replay.timeline import OUT_OF_MEMORY_TEXT, impossible_text
from localcloud.sagemaker_service.replay.trace import Trace, choose_trace, implied_rate

FAILED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFate:
    """How a run ends once it has done ``last_step`` steps."""

    last_step: int
    exit_code: int | None = 0
    signal: int | None = None
    failure: str | None = None

    @property
    def has_failed(self) -> bool:
        return self.exit_code != 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRun:
    """One run of a simulated job that several runs share."""

    run_id: str
    #: The job that the run would have alone; its name draws the times of the run's steps.
    job: TrainingJob
    work: JobWork
    trace: Trace
    fate: RunFate
    longest_ms: int | None
    #: The first run of the cell of a further run, which has to be among the best.
    first: str | None = None

    def milliseconds(self, first_step: int, *, last_step: int | None) -> int:
        """The time from the run's begin to its end, or to the end of ``last_step``.

        A limit may end the run before.
        """
        last_step = max(self.fate.last_step if last_step is None else last_step, first_step)
        return ceil(
            1000
            * training_seconds(
                self.trace, self.job, self.work, first_step=first_step, last_step=last_step
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedWork:
    """All runs of a simulated job that several runs share."""

    job_id: str
    runs: tuple[SharedRun, ...]
    #: How long the job's parent process carries runs after its start. The download before it
    #: counts for the job's limit.
    deadline_ms: int
    #: The samples of the whole workload, by which runs race; None if no run is ended for another.
    race_samples: float | None
    #: The steps of a throw-away run.
    warm_up_steps: int

    def warm_up_milliseconds(self, run: SharedRun) -> int:
        if not self.warm_up_steps:
            return 0
        return run.milliseconds(
            0, last_step=min(self.warm_up_steps, total_steps(run.trace, run.work))
        )


def read_shared_work(
    job: TrainingJob,
    document: Mapping[str, Any],
    traces: Sequence[Trace],
    faults: FaultInjector,
) -> SharedWork:
    limit = document.get("max_run_seconds")
    longest_ms = None if limit is None else round(limit * 1000)
    runs = list[SharedRun]()
    for run in (*document["runs"], *document.get("again", ())):
        run_job = job_of_run(job, run)
        work = read_work(run_job)
        trace = choose_trace(run_job, traces)
        fate = _fate(run_job, work, trace, faults)
        about = {"run_id": run["run_id"], "first": run.get("first")}
        runs.append(
            SharedRun(
                job=run_job, work=work, trace=trace, fate=fate, longest_ms=longest_ms, **about
            )
        )
    seconds = (
        document["max_job_seconds"] - document["ending_seconds"] - runs[0].trace.download_seconds
    )
    return SharedWork(
        job_id=document["job_id"],
        runs=tuple(runs),
        deadline_ms=max(round(seconds * 1000), 0),
        race_samples=document.get("race", {}).get("samples"),
        warm_up_steps=document.get("warm_up_steps", 0),
    )


def _fate(run_job: TrainingJob, work: JobWork, trace: Trace, faults: FaultInjector) -> RunFate:
    """A fault of a process is drawn for each run; faults of instances are the job's."""
    last_step = total_steps(trace, work)
    implied = implied_rate(trace, run_job, work)
    if implied.is_impossible:
        return RunFate(last_step=0, exit_code=FAILED, failure=impossible_text(implied))
    match faults.job_fault(run_job.name):
        case JobFault.OUT_OF_MEMORY:
            return RunFate(last_step=0, exit_code=FAILED, failure=OUT_OF_MEMORY_TEXT)
        case JobFault.KILLED_PROCESS:
            dice = faults.dice("fate", run_job.name)
            return RunFate(
                last_step=dice.randrange(last_step) if last_step else 0,
                exit_code=None,
                signal=SIGKILL,
            )
        case _:
            return RunFate(last_step=last_step)
