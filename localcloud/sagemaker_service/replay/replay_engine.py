"""Takes simulated jobs through their planned statuses in virtual time, with their step logs."""

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from boto3.exceptions import Boto3Error
from botocore.exceptions import BotoCoreError, ClientError

from localcloud.sagemaker_service.clock import NOW_MS, Schedule, VirtualClock
from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import (
    ENDS,
    MESSAGES,
    TERMINAL,
    Engine,
    PlannedStep,
    SecondaryStatus,
    TrainingJob,
    Transition,
    ended,
    moved,
)
from localcloud.sagemaker_service.jobs.job_store import JobStore
from localcloud.sagemaker_service.replay.simulated_log import SimulatedFiles
from localcloud.sagemaker_service.replay.simulation import Simulation, simulation_of
from localcloud.sagemaker_service.replay.timeline import plan_stop
from localcloud.sagemaker_service.replay.trace import Trace
from localcloud.sagemaker_service.service_health import (
    RETRY_SECONDS,
    Worker,
    internal_error,
    write_until_done,
)

LOG = logging.getLogger(__name__)
WORKERS = 8
SIMULATED = "Simulated: "
PLAN = ("planned", "simulated_runs", "doomed_runs", "completed_runs")


class ReplayEngine:
    def __init__(
        self,
        *,
        store: JobStore,
        files: SimulatedFiles,
        clock: VirtualClock,
        faults: FaultInjector,
        traces: tuple[Trace, ...],
        may_jump: Callable[[], bool],
    ) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._faults = faults
        self._traces = traces
        self._schedule = Schedule(clock, may_jump)
        self._pool = ThreadPoolExecutor(WORKERS, thread_name_prefix="replay")
        self._worker = Worker("replay engine", self._take_next)

    def start(self) -> None:
        for job in self._store.unfinished(Engine.REPLAY):
            self.wake(job.name)
        self._worker.start()

    def wake(self, name: str) -> None:
        """Checks a job now that is new or was changed from outside."""
        self._schedule.wake(name)

    def close(self) -> None:
        self._schedule.close()
        self._worker.close()
        self._pool.shutdown()

    def _take_next(self) -> bool:
        """Always True: the worker need not wait, because the schedule does."""
        name = self._schedule.take()
        if name is not None:
            self._pool.submit(self._advance, name)
        return True

    def _advance(self, name: str) -> None:
        due_ms: int | None = None
        try:
            due_ms = self._bring_up_to_date(name)
        except (BotoCoreError, ClientError, Boto3Error) as error:
            LOG.warning(
                "step log of %s not written, again in %.0f s: %s", name, RETRY_SECONDS, error
            )
            time.sleep(RETRY_SECONDS)
            due_ms = NOW_MS
        except (
            Exception
        ) as error:  # whatever fails, the job needs its end, and the worker takes the next one
            LOG.exception("%s can't be simulated any further", name)
            reason = internal_error(error)
            write_until_done(
                lambda: self._store.change(name, partial(self._failed, reason)), self._worker.ending
            )
        finally:
            self._schedule.done(name, due_ms)

    def _failed(self, reason: str, job: TrainingJob) -> TrainingJob:
        message = SIMULATED + MESSAGES[SecondaryStatus.FAILED]
        now_ms = self._clock.now_ms()
        return ended(
            job, SecondaryStatus.FAILED, now_ms=now_ms, failure_reason=reason, message=message
        )

    def _bring_up_to_date(self, name: str) -> int | None:
        """Applies the changes whose time has come, and returns the time of the job's next
        change.
        """
        job = self._store.get(name)
        if job is None or job.status in TERMINAL:
            return None
        simulation = simulation_of(job, self._files, self._traces, self._faults)
        if not job.planned:
            planned = simulation.plan(job, self._faults)
            plan = {name: getattr(planned, name) for name in PLAN}
            job = self._store.change(job.name, lambda stored: replace(stored, **plan))
        if job.stop_requested and job.planned[-1].secondary_status is not SecondaryStatus.STOPPED:
            job = self._stop(job, simulation)
        if job.planned and job.planned[0].due_ms <= self._clock.now_ms():
            job = self._apply(job, job.planned[0], simulation)
        return job.planned[0].due_ms if job.planned else None

    def _apply(self, job: TrainingJob, step: PlannedStep, simulation: Simulation) -> TrainingJob:
        simulated_steps = self._log_training(
            job, job.transitions[-1], simulation, until_ms=step.due_ms
        )
        if step.secondary_status is SecondaryStatus.INTERRUPTED:
            simulated_steps = simulation.steps_in_checkpoint(simulated_steps)
        if step.secondary_status is SecondaryStatus.COMPLETED:
            self._files.write_tokens(job)

        def change(stored: TrainingJob) -> TrainingJob:
            if stored.status in TERMINAL or (stored.stop_requested and not job.stop_requested):
                return stored
            after = replace(stored, planned=stored.planned[1:], simulated_steps=simulated_steps)
            return _taken(after, step)

        return self._store.change(job.name, change)

    def _stop(self, job: TrainingJob, simulation: Simulation) -> TrainingJob:
        """Logs the training before the job's current status, Stopping, and plans its end."""
        before, stopping = job.transitions[-2:]
        # The request may come after the planned end of the status, which this engine has not
        # applied yet.
        now_ms = max(before.start_ms, min(stopping.start_ms, job.planned[0].due_ms))
        transitions = (
            *job.transitions[:-2],
            replace(before, end_ms=now_ms),
            replace(stopping, start_ms=now_ms),
        )
        simulated_steps = self._log_training(job, before, simulation, until_ms=now_ms)
        is_limited = not self._faults.current.unheeded_limits
        planned = plan_stop(
            job, before.status, now_ms, trace=simulation.trace, is_limited=is_limited
        )
        return self._store.change(
            job.name,
            lambda stored: replace(
                stored, transitions=transitions, planned=planned, simulated_steps=simulated_steps
            ),
        )

    def _log_training(
        self, job: TrainingJob, ending: Transition, simulation: Simulation, *, until_ms: int
    ) -> int:
        if ending.status is not SecondaryStatus.TRAINING:
            return job.simulated_steps
        return simulation.log(job, ending, until_ms=until_ms)


def _taken(job: TrainingJob, step: PlannedStep) -> TrainingJob:
    message = SIMULATED + (step.message or MESSAGES[step.secondary_status])
    if step.secondary_status in ENDS:
        reason = step.failure_reason
        return ended(
            job, step.secondary_status, now_ms=step.due_ms, failure_reason=reason, message=message
        )
    after = moved(job, step.secondary_status, now_ms=step.due_ms, message=message)
    if step.secondary_status is SecondaryStatus.DOWNLOADING:
        start_ms = job.training_start_ms if job.training_start_ms is not None else step.due_ms
        after = replace(after, claimed=True, training_start_ms=start_ms)
    return after
