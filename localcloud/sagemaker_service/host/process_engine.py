"""Runs the local jobs on this machine, one at a time, in the order of their creation."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from localcloud.sagemaker_service.host.host_processes import end_stray_processes, process_mark
from localcloud.sagemaker_service.host.host_training import ServiceEnding
from localcloud.sagemaker_service.host.job_run import (
    STOPPED,
    FinalStatus,
    JobContext,
    JobRun,
    failed,
)
from localcloud.sagemaker_service.jobs.faults import CAPACITY_ERROR, JobFault
from localcloud.sagemaker_service.jobs.job import (
    BILLED,
    Engine,
    Status,
    TrainingJob,
    billed_ms,
    ended,
    moved,
)
from localcloud.sagemaker_service.service_health import (
    INTERNAL_ERROR,
    Worker,
    internal_error,
    write_until_done,
)
from traindyno.sagemaker.job_description import QUEUED
from traindyno.sagemaker.request import EXECUTION_TAG

LOG = logging.getLogger(__name__)
NO_EXECUTION = "another job"


class ProcessEngine:
    def __init__(self, context: JobContext) -> None:
        self._context = context
        self._store = context.store
        self._clock = context.clock
        self._worker = Worker("process engine", self._take_next)

    def start(self) -> None:
        for job in self._store.unfinished(Engine.PROCESS):
            if job.claimed:
                self._end_interrupted(job)
        self._worker.start()

    def wake(self, name: str) -> None:
        LOG.debug("%s was added or changed", name)
        self._tell_waiting()
        self._worker.wake()

    def kill(self, job: TrainingJob) -> int:
        """Sends SIGKILL to every process of a running job and returns their number."""
        return end_stray_processes(process_mark(job, self._context.settings))

    def close(self) -> None:
        """Ends the running job's processes; the next start records the job's end."""
        self._worker.close()

    def _tell_waiting(self) -> None:
        """Tells the jobs that wait for the machine which job has it."""
        jobs = self._store.unfinished(Engine.PROCESS)
        for message in (waiting_message(job) for job in jobs if job.claimed):
            for job in jobs:
                self._change(job.name, partial(_waiting, message=message))

    def _take_next(self) -> bool:
        """Runs the next job. False if none was waiting."""
        job = self._store.next_waiting(Engine.PROCESS)
        if job is None:
            return False
        with self._clock.running(not_before_ms=job.modified_ms):
            claimed = self._change(job.name, _claimed)
            if claimed.claimed:
                LOG.info("%s begins", job.name)
                self._tell_waiting()
                self._run(claimed)
                LOG.info("%s is over", job.name)
        return True

    def _run(self, job: TrainingJob) -> None:
        try:
            final = self._work_on(job)
        except ServiceEnding:
            return
        except (
            Exception
        ) as error:  # whatever fails, the job needs its end, and the engine takes the next one
            LOG.exception("%s could not be run", job.name)
            final = failed(internal_error(error))
        self._settle(job.name, final)

    def _work_on(self, job: TrainingJob) -> FinalStatus:
        match self._context.faults.job_fault(job.name):
            case JobFault.CAPACITY_ERROR:
                return failed(CAPACITY_ERROR)
            case JobFault.INTERNAL_ERROR:
                return failed(INTERNAL_ERROR)
            case _:
                return JobRun(
                    job, self._context, is_service_ending=self._worker.ending.is_set
                ).run()

    def _settle(self, name: str, final: FinalStatus) -> None:
        # The end is now: while the disk is full, writing it may take hours, which are not billed.
        timed = replace(
            final, ended_ms=self._clock.now_ms() if final.ended_ms is None else final.ended_ms
        )
        write_until_done(
            lambda: self._change(name, lambda job, now_ms: _ended(job, timed, now_ms)),
            self._worker.ending,
        )

    def _end_interrupted(self, job: TrainingJob) -> None:
        """Ends a job that was running when the service ended."""
        stray = self.kill(job)
        LOG.warning(
            "%s was running when the service ended; %d processes ended now", job.name, stray
        )
        now_ms = self._clock.now_ms()
        final = STOPPED if job.stop_requested else failed(INTERNAL_ERROR)
        self._store.change(job.name, lambda job: _ended(job, final, _latest_ms(job, now_ms)))

    def _change(self, name: str, change: Callable[[TrainingJob, int], TrainingJob]) -> TrainingJob:
        now_ms = self._clock.now_ms()
        return self._store.change(name, lambda job: change(job, now_ms))


def _claimed(job: TrainingJob, now_ms: int) -> TrainingJob:
    """Its start begins now: the time in the queue of this machine is no phase of it, and so in no
    cell's time.
    """
    if job.stop_requested or job.status is not Status.IN_PROGRESS:
        return job
    prepared = moved(
        job, job.secondary_status, now_ms=now_ms, message="Preparing the instances for training"
    )
    start = replace(prepared.transitions[-1], start_ms=prepared.modified_ms)
    return replace(prepared, transitions=(*prepared.transitions[:-1], start), claimed=True)


def waiting_message(holder: TrainingJob) -> str:
    who = holder.tags.get(EXECUTION_TAG, NO_EXECUTION)
    since = datetime.fromtimestamp(holder.transitions[0].start_ms / 1000, UTC)
    return f"{QUEUED}, behind {who}, which has it since {since:%H:%M} UTC"


def _waiting(job: TrainingJob, now_ms: int, *, message: str) -> TrainingJob:
    if job.claimed or job.transitions[-1].message == message:
        return job
    return moved(job, job.secondary_status, now_ms=now_ms, message=message)


def _latest_ms(job: TrainingJob, now_ms: int) -> int:
    """Now, but at most when the job's limit would have ended it: the service was not there to see
    its end.
    """
    last = job.transitions[-1]
    if job.training_start_ms is None or last.status not in BILLED:
        return max(last.start_ms, now_ms)
    left_ms = job.max_runtime_seconds * 1000 - billed_ms(job)
    return max(last.start_ms, min(now_ms, last.start_ms + left_ms))


def _ended(job: TrainingJob, final: FinalStatus, now_ms: int) -> TrainingJob:
    at_ms = now_ms if final.ended_ms is None else final.ended_ms
    return ended(job, final.secondary_status, now_ms=at_ms, failure_reason=final.failure_reason)
