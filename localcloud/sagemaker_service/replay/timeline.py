"""Plans the statuses of a simulated job, with their times, when the job is created."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from localcloud.sagemaker_service.jobs.faults import CAPACITY_ERROR, FaultInjector, JobFault
from localcloud.sagemaker_service.jobs.job import (
    BILLED,
    UPLOAD_ENDED,
    PlannedStep,
    SecondaryStatus,
    TrainingJob,
)
from localcloud.sagemaker_service.jobs.job_work import JobWork
from localcloud.sagemaker_service.replay.simulated_log import total_steps, training_seconds
from localcloud.sagemaker_service.replay.trace import ImpliedRate, Trace, implied_rate
from localcloud.sagemaker_service.service_health import INTERNAL_ERROR
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import failure_text
from traindyno.core.suite.job_time import STOP_SECONDS, UPLOAD_SECONDS

NO_CAPACITY_MESSAGE = "Insufficient capacity error from EC2 while launching instances, retrying!"
OUT_OF_MEMORY_TEXT = failure_text(Outcome.OUT_OF_MEMORY, "CUDA out of memory (simulated)")
KILLED = (
    "AlgorithmError: ExecuteUserScriptError:\n"
    "ExitCode 137\n"
    'ErrorMessage "(simulated)", exit code: 137'
)
INTERRUPTION_SECONDS = 300.0
S = SecondaryStatus
Timeline = tuple["TimedStatus", ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedStatus:
    """A status, and how long the job has it. The last one, with which the job ends, has no time."""

    secondary_status: SecondaryStatus
    seconds: float = 0.0
    message: str | None = None
    failure_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTimes:
    """Seconds of a job's training in the cases that may come."""

    #: The whole training, without a fault.
    whole: float
    #: The training until a fault in its midst.
    until_fault: float
    #: The training after this fault.
    resumed: float
    #: The time until processes fail at their start; None for a shared job, whose runs fail alone.
    until_failure: float | None = None


def plan_timeline(
    job: TrainingJob, trace: Trace, work: JobWork, faults: FaultInjector
) -> tuple[PlannedStep, ...]:
    def seconds(first_step: int, end_step: int) -> float:
        return training_seconds(trace, job, work, first_step=first_step, last_step=end_step)

    last_step = total_steps(trace, work)
    fault_step = faults.dice("fate", job.name).randrange(last_step) if last_step else 0
    times = TrainingTimes(
        whole=seconds(0, last_step),
        until_fault=seconds(0, fault_step),
        resumed=seconds(work.steps_in_checkpoint(fault_step), last_step),
        until_failure=seconds(0, 0),
    )
    implied = implied_rate(trace, job, work)
    return plan_statuses(
        job,
        trace,
        times,
        faults,
        refusal=impossible_text(implied) if implied.is_impossible else None,
    )


def plan_statuses(
    job: TrainingJob,
    trace: Trace,
    times: TrainingTimes,
    faults: FaultInjector,
    *,
    refusal: str | None = None,
) -> tuple[PlannedStep, ...]:
    """Plans the statuses of a job.

    Args:
        job: The training job.
        trace: The times of its parts.
        times: The times of its training.
        faults: The faults that a test asks for.
        refusal: Why the job's processes fail at once, if they do.
    """
    planned = _plan_job(job, trace, times, faults, refusal)
    if not faults.current.unheeded_limits:
        planned = _cut_at_limits(job, planned, trace)
    return tuple(_steps(job.created_ms, planned))


def plan_stop(
    job: TrainingJob, before: SecondaryStatus, now_ms: int, *, trace: Trace, is_limited: bool
) -> tuple[PlannedStep, ...]:
    """The last statuses of a job that was asked to stop in the status ``before``, while it held
    instances.
    """
    if before is S.UPLOADING:
        # Its script has ended: the upload goes on.
        return (replace(job.planned[-1], secondary_status=S.STOPPED, failure_reason=None),)
    stopping, uploading = _ending(trace, is_limited=is_limited)
    upload_ms = now_ms + round(stopping.seconds * 1000)
    end_ms = upload_ms + round(uploading.seconds * 1000)
    return (
        PlannedStep(due_ms=upload_ms, secondary_status=S.UPLOADING),
        PlannedStep(due_ms=end_ms, secondary_status=S.STOPPED),
    )


def _ending(trace: Trace, *, is_limited: bool = True) -> tuple[TimedStatus, TimedStatus]:
    """What is billed after a stop: until the script ends or is ended, and the upload."""
    upload_seconds = (
        min(trace.upload_seconds, UPLOAD_SECONDS) if is_limited else trace.upload_seconds
    )
    return (
        TimedStatus(secondary_status=S.STOPPING, seconds=min(trace.stop_seconds, STOP_SECONDS)),
        TimedStatus(secondary_status=S.UPLOADING, seconds=upload_seconds),
    )


def _plan_job(
    job: TrainingJob, trace: Trace, times: TrainingTimes, faults: FaultInjector, refusal: str | None
) -> Timeline:
    starting = TimedStatus(secondary_status=S.STARTING, seconds=trace.start_seconds)
    begun = (starting, TimedStatus(secondary_status=S.DOWNLOADING, seconds=trace.download_seconds))
    ending = (
        TimedStatus(secondary_status=S.UPLOADING, seconds=trace.upload_seconds),
        TimedStatus(secondary_status=S.COMPLETED),
    )
    planned: Timeline = (*begun, _training(times.whole), *ending)
    if refusal is not None:
        return _failure(begun, _script_failed(refusal))
    match faults.job_fault(job.name):
        case JobFault.CAPACITY_ERROR:
            planned = _failure((replace(starting, message=NO_CAPACITY_MESSAGE),), CAPACITY_ERROR)
        case JobFault.CAPACITY_WAIT:
            waiting = TimedStatus(
                secondary_status=S.PENDING, seconds=faults.current.capacity_wait_seconds
            )
            planned = (waiting, *planned)
        case JobFault.INTERNAL_ERROR:
            planned = _failure((*begun, _training(times.until_fault)), INTERNAL_ERROR)
        case JobFault.OUT_OF_MEMORY if times.until_failure is not None:
            planned = _failure(
                (*begun, _training(times.until_failure)), _script_failed(OUT_OF_MEMORY_TEXT)
            )
        case JobFault.KILLED_PROCESS if times.until_failure is not None:
            planned = _failure((*begun, _training(times.until_fault)), KILLED)
        case JobFault.SPOT_INTERRUPTION if job.is_spot:
            gap = TimedStatus(secondary_status=S.INTERRUPTED, seconds=INTERRUPTION_SECONDS)
            planned = (
                *begun,
                _training(times.until_fault),
                gap,
                *begun,
                _training(times.resumed),
                *ending,
            )
        case _:
            pass
    return planned


def _training(seconds: float) -> TimedStatus:
    return TimedStatus(secondary_status=S.TRAINING, seconds=seconds)


def impossible_text(implied: ImpliedRate) -> str:
    """The failure of a run with an impossible trace; it names what to change."""
    message = (
        f"no device computes this: {implied.text}. Correct the trace's step time, samples or FLOPs"
    )
    return failure_text(Outcome.USER_CODE_ERROR, message)


def _script_failed(text: str) -> str:
    """The failure reason of a job."""
    return f"AlgorithmError: {text}, exit code: 1"


def _failure(statuses: Timeline, reason: str) -> Timeline:
    return (*statuses, TimedStatus(secondary_status=S.FAILED, failure_reason=reason))


def _cut_at_limits(job: TrainingJob, planned: Timeline, trace: Trace) -> Timeline:
    """The plan up to the first limit of StoppingCondition that the job would exceed, its stop and
    its upload. An upload has a limit of its own.
    """
    limits = job.request.get("StoppingCondition") or {}
    longest_wait = limits.get("MaxWaitTimeInSeconds") if job.is_spot else None
    longest_pending = limits.get("MaxPendingTimeInSeconds")
    elapsed = 0.0
    billed = 0.0
    kept = list[TimedStatus]()
    for timed in planned:
        if timed.secondary_status is S.UPLOADING and timed.seconds > UPLOAD_SECONDS:
            ended_upload = replace(timed, seconds=float(UPLOAD_SECONDS))
            return _failure((*kept, ended_upload), UPLOAD_ENDED)
        is_billed = timed.secondary_status in BILLED - {S.UPLOADING}
        rooms = {S.MAX_RUNTIME_EXCEEDED: job.max_runtime_seconds - billed} if is_billed else {}
        if longest_wait is not None and timed.secondary_status is not S.UPLOADING:
            rooms[S.MAX_WAIT_TIME_EXCEEDED] = longest_wait - elapsed
        if longest_pending is not None and timed.secondary_status is S.PENDING:
            rooms[S.STOPPED] = longest_pending - elapsed
        ending, room = min(
            rooms.items(), key=lambda limit: limit[1], default=(S.STOPPED, timed.seconds)
        )
        if room < timed.seconds:
            kept.append(replace(timed, seconds=max(room, 0.0)))
            after = _ending(trace) if is_billed else ()
            return (*kept, *after, TimedStatus(secondary_status=ending))
        kept.append(timed)
        elapsed += timed.seconds
        billed += timed.seconds if is_billed else 0.0
    return planned


def _steps(created_ms: int, planned: Timeline) -> Iterator[PlannedStep]:
    due_ms = float(created_ms)
    for timed in planned:
        yield PlannedStep(
            due_ms=round(due_ms),
            secondary_status=timed.secondary_status,
            message=timed.message,
            failure_reason=timed.failure_reason,
        )
        due_ms += timed.seconds * 1000
