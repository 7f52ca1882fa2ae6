"""What is simulated of a job: one run, or several that share it. Both plan its statuses and write its files."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import TrainingJob, Transition
from localcloud.sagemaker_service.jobs.job_work import JobWork
from localcloud.sagemaker_service.jobs.shared_job import is_shared
from localcloud.sagemaker_service.replay.shared_deaths import doomed_runs
from localcloud.sagemaker_service.replay.shared_files import shared_files
from localcloud.sagemaker_service.replay.shared_session import next_session, sessions_of
from localcloud.sagemaker_service.replay.shared_work import SharedWork, read_shared_work
from localcloud.sagemaker_service.replay.simulated_files import SimulatedFiles
from localcloud.sagemaker_service.replay.timeline import TrainingTimes, plan_statuses, plan_timeline
from localcloud.sagemaker_service.replay.trace import Trace

WorkOf = Callable[[TrainingJob], tuple[JobWork, Trace]]


class Simulation(Protocol):
    @property
    def trace(self) -> Trace:
        """Of the job's own times: its start, its download and its end."""

    def plan(self, job: TrainingJob, faults: FaultInjector) -> TrainingJob:
        """The job with its planned statuses."""

    def log(self, job: TrainingJob, training: Transition, *, until_ms: int) -> int:
        """Writes what the job wrote in this training until then. Returns how many steps it has done."""

    def steps_in_checkpoint(self, steps: int) -> int:
        """How many of them an interrupted job has done when it starts again."""


def simulation_of(job: TrainingJob, files: SimulatedFiles, work_of: WorkOf, faults: FaultInjector) -> Simulation:
    if is_shared(job):
        work = read_shared_work(job, files.read_document(job), work_of, faults)
        return SharedRuns(work=work, files=files)
    one_work, trace = work_of(job)
    return OneRun(work=one_work, trace=trace, files=files)


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    work: JobWork
    trace: Trace
    files: SimulatedFiles

    def plan(self, job: TrainingJob, faults: FaultInjector) -> TrainingJob:
        return replace(job, planned=plan_timeline(job, self.trace, self.work, faults))

    def log(self, job: TrainingJob, training: Transition, *, until_ms: int) -> int:
        return self.files.write(job, self.trace, self.work, training, until_ms=until_ms)

    def steps_in_checkpoint(self, steps: int) -> int:
        return self.work.steps_in_checkpoint(steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedRuns:
    """Its progress follows from its times, so that no steps are counted."""

    work: SharedWork
    files: SimulatedFiles

    @property
    def trace(self) -> Trace:
        return self.work.runs[0].trace

    def plan(self, job: TrainingJob, faults: FaultInjector) -> TrainingJob:
        """Without the runs that have ended in earlier jobs. A fault comes at any time of the training."""
        ended = self.files.ended_runs(job)
        begun = replace(
            job,
            simulated_runs=tuple(run.run_id for run in self.work.runs if run.run_id not in ended),
            doomed_runs=doomed_runs(self.files.read_journals(job), job),
        )
        first = next_session(begun, self.work, (), start_ms=0)
        whole_ms = first.closed_ms or 0
        fault_ms = round(whole_ms * faults.dice("fate", job.name).random())
        cut_off = next_session(begun, self.work, (), start_ms=0, until_ms=fault_ms)
        resumed = next_session(begun, self.work, (cut_off,), start_ms=0)
        times = TrainingTimes(
            whole=whole_ms / 1000, until_fault=fault_ms / 1000, resumed=(resumed.closed_ms or 0) / 1000
        )
        return replace(begun, planned=plan_statuses(job, self.trace, times, faults))

    def log(self, job: TrainingJob, training: Transition, *, until_ms: int) -> int:
        sessions = sessions_of(job, self.work, training, until_ms=until_ms)
        self.files.write_shared(job, shared_files(job, self.work.job_id, sessions))
        return 0

    def steps_in_checkpoint(self, steps: int) -> int:
        return steps
