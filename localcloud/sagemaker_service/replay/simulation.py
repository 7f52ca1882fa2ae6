"""What is simulated of a job: one run, or several that share it.

Both plan its statuses and write its files.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import TrainingJob, Transition
from localcloud.sagemaker_service.jobs.job_work import JobWork, is_shared, read_work
from localcloud.sagemaker_service.replay.shared_session import (
    SharedSession,
    Span,
    as_begun,
    next_session,
    sessions_of,
)
from localcloud.sagemaker_service.replay.shared_work import SharedWork, read_shared_work
from localcloud.sagemaker_service.replay.simulated_log import SimulatedFiles
from localcloud.sagemaker_service.replay.timeline import TrainingTimes, plan_statuses, plan_timeline
from localcloud.sagemaker_service.replay.trace import Trace, choose_trace
from traindyno.core.jobs.journal_format import (
    DEADLINE,
    ENDED,
    EXITED,
    FORMAT_VERSION,
    JOURNAL,
    PARENT_ENDED,
    PARENT_STARTED,
    RUN_BEGAN,
    RUN_ENDED,
    RUN_LEFT,
    RUN_SKIPPED,
    STEP_LOG,
    WARM_UP_BEGAN,
    WARMED_UP,
)

Simulation: TypeAlias = "OneRun | SimulatedRuns"


def shared_files(
    job: TrainingJob, work: SharedWork, sessions: Sequence[SharedSession]
) -> Iterator[tuple[str, bytes]]:
    """The files of the runs of the last session, and of all journals.

    Yields the key below the job's checkpoint prefix, and the contents, of each.
    """
    for span in sessions[-1].spans:
        folder = f"{span.run.run_id}/{STEP_LOG}/{job.name}"
        logs: dict[str, dict[str, bytes]] = {host: {} for host in job.hosts}
        for rank, (name, text) in enumerate(span.stretch().files.items() if span.place else ()):
            logs[job.hosts[rank // span.run.work.processes_per_host]][f"{folder}/{name}"] = (
                text.encode()
            )
        for files in logs.values():
            yield from files.items()
        if span.reason is not None:
            for host, files in logs.items():
                yield (
                    f"{span.run.run_id}/{ENDED}/{job.name}/{host}.json",
                    _json(_end(job, span, host, files)),
                )
    for host in job.hosts:
        lines = (line for session in sessions for line in _journal(job, work, session, host))
        yield f"{JOURNAL}/{job.name}/{host}.jsonl", b"".join(_json(line) for line in lines)


def _end(job: TrainingJob, span: Span, host: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    described = {
        key: {"bytes": len(contents), "sha256": hashlib.sha256(contents).hexdigest()}
        for key, contents in files.items()
    }
    return {
        "version": FORMAT_VERSION,
        "run_id": span.run.run_id,
        "job_name": job.name,
        "host": host,
        "hosts": job.hosts,
        **_reason(span),
        "failed_host": job.hosts[0]
        if span.place and not span.bound and span.run.fate.has_failed
        else None,
        "failure": span.run.fate.failure if span.place and not span.bound else None,
        "oom_kills": 0,
        "began_at": span.begin_ms / 1000,
        "ended_at": span.end_ms / 1000,
        "own_milliseconds": span.end_ms - span.begin_ms,
        "place": span.place,
        "leftovers": {},
        "bound": asdict(span.bound) if span.bound else None,
        "files": described,
    }


def _reason(span: Span) -> dict[str, Any]:
    """A run that its parent ended has no exit code."""
    fate = span.run.fate
    has_exited = span.reason == EXITED
    return {
        "reason": span.reason,
        "exit_code": fate.exit_code if has_exited else None,
        "signal": fate.signal if has_exited else None,
    }


def _journal(
    job: TrainingJob, work: SharedWork, session: SharedSession, host: str
) -> Iterator[dict[str, Any]]:
    def line(event: str, at_ms: int, **fields: Any) -> dict[str, Any]:
        return {
            "event": event,
            "time": at_ms / 1000,
            "elapsed_milliseconds": at_ms - session.start_ms,
            **fields,
        }

    runs = [run.run_id for run in work.runs if run.first is None]
    about = {
        "version": FORMAT_VERSION,
        "job_id": work.job_id,
        "host": host,
        "hosts": job.hosts,
        "runs": runs,
    }
    yield line(PARENT_STARTED, session.start_ms, **about)
    for run_id in session.skipped:
        yield line(RUN_SKIPPED, session.start_ms, run_id=run_id)
    if session.warm_up_ms:
        yield line(WARM_UP_BEGAN, session.start_ms)
    if session.warm_up_ms and session.spans:
        yield line(
            WARMED_UP, session.start_ms + session.warm_up_ms, own_milliseconds=session.warm_up_ms
        )
    for span in session.spans:
        if span.place:
            yield line(RUN_BEGAN, span.begin_ms, run_id=span.run.run_id, place=span.place)
        if span.reason is not None:
            yield line(RUN_ENDED, span.end_ms, run_id=span.run.run_id, reason=span.reason)
    if session.closed_ms is None:
        return
    begun = {span.run.run_id for span in session.spans}
    for run_id in session.left:
        yield line(
            RUN_LEFT, session.closed_ms, run_id=run_id, reason=DEADLINE, began=run_id in begun
        )
    left = DEADLINE if session.left else None
    yield line(PARENT_ENDED, session.closed_ms, reason=left)


def _json(document: Mapping[str, Any]) -> bytes:
    return f"{json.dumps(document)}\n".encode()


@dataclass(frozen=True, slots=True, kw_only=True)
class OneRun:
    """The simulation of a job of one run."""

    work: JobWork
    #: The times of the job itself: start, download and end.
    trace: Trace
    files: SimulatedFiles

    def plan(self, job: TrainingJob, faults: FaultInjector) -> TrainingJob:
        return replace(job, planned=plan_timeline(job, self.trace, self.work, faults))

    def log(self, job: TrainingJob, training: Transition, *, until_ms: int) -> int:
        """Writes what the job wrote in this training until then.

        Returns how many steps it has done.
        """
        return self.files.write(job, self.trace, self.work, training, until_ms=until_ms)

    def steps_in_checkpoint(self, steps: int) -> int:
        return self.work.steps_in_checkpoint(steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRuns:
    """Its progress follows from its times, so that no steps are counted."""

    work: SharedWork
    files: SimulatedFiles

    @property
    def trace(self) -> Trace:
        return self.work.runs[0].trace

    def plan(self, job: TrainingJob, faults: FaultInjector) -> TrainingJob:
        """Plans the job without the runs that have ended in earlier jobs.

        A fault comes at any time of the training.
        """
        begun = as_begun(job, self.work, self.files.read_records(job))
        first = next_session(begun, self.work, (), start_ms=0)
        whole_ms = first.closed_ms or 0
        fault_ms = round(whole_ms * faults.dice("fate", job.name).random())
        cut_off = next_session(begun, self.work, (), start_ms=0, until_ms=fault_ms)
        resumed = next_session(begun, self.work, (cut_off,), start_ms=0)
        times = TrainingTimes(
            whole=whole_ms / 1000,
            until_fault=fault_ms / 1000,
            resumed=(resumed.closed_ms or 0) / 1000,
        )
        return replace(begun, planned=plan_statuses(job, self.trace, times, faults))

    def log(self, job: TrainingJob, training: Transition, *, until_ms: int) -> int:
        sessions = sessions_of(job, self.work, training, until_ms=until_ms)
        self.files.write_shared(job, shared_files(job, self.work, sessions))
        return 0

    def steps_in_checkpoint(self, steps: int) -> int:
        return steps


def simulation_of(
    job: TrainingJob, files: SimulatedFiles, traces: Sequence[Trace], faults: FaultInjector
) -> Simulation:
    if is_shared(job):
        return SimulatedRuns(
            work=read_shared_work(job, files.read_document(job), traces, faults), files=files
        )
    return OneRun(work=read_work(job), trace=choose_trace(job, traces), files=files)
