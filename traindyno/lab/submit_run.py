"""Start the training job of the next attempt at most once, and answer the waiting task if no job is
started.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from math import ceil
from typing import Any, Protocol

from traindyno.aws.client_errors import AwsError, temporary
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import JobRefused, TrainingJobs
from traindyno.core.errors import (
    CapacityUnavailable,
    JobTimeUsed,
    NextAttempt,
    ServiceFault,
    StartLater,
)
from traindyno.core.jobs.job import AttemptOwner, Job, not_started_text, owner_id, owner_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_attempts import is_last_attempt
from traindyno.core.planning.admission import Decision, admit_time
from traindyno.core.planning.job_terms import JobTerms, job_terms
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.s3_keys import job_document_key, suite_key
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.attempt_owners import OwnerServices, attempts_of, row_of, rows_of
from traindyno.lab.budget import BudgetServices, reserve_worst_case, stopped_before
from traindyno.lab.prepare_data import PreparationAnswers, answer_preparation, fail_preparation
from traindyno.lab.shared_runs import SharedRuns, shared_runs_of
from traindyno.sagemaker.job_document import job_document
from traindyno.sagemaker.job_names import job_name_of
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.request import build_preparation_request, build_training_job_request
from traindyno.sagemaker.shared_request import build_shared_job_request
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRow, ExecutionRows
from traindyno.store.owners import OwnerRows
from traindyno.store.results_bucket import ResultsBucket
from traindyno.store.spending import Spending
from traindyno.store.start_slots import StartSlots

# A waiting function is billed; a waiting state costs two transitions.
LONGEST_SLEEP_SECONDS = 5.0
# A job that is later than this for its start slot reserves another one.
SLOT_KEPT_SECONDS = 30.0


class SubmitRunServices(OwnerServices, BudgetServices, PreparationAnswers, Protocol):
    """Services that starting a job needs.

    ``bucket`` holds the suite, and what shared jobs have written. The job's end answers the task,
    or ``answers`` if no job is started.
    """

    bucket: ResultsBucket
    executions: ExecutionRows
    attempts: AttemptRows
    jobs: TrainingJobs
    answers: TaskAnswers
    spending: Spending
    start_slots: StartSlots


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """Result of a submission.

    ``job_name`` is the started job; without one, the waiting task got ``answered``, an outcome or
    an error.
    """

    job_name: str | None = None
    answered: str | None = None


def submit_run(
    owner: AttemptOwner,
    token: str,
    *,
    services: SubmitRunServices,
    settings: JobSettings,
    now: float,
    sleep: Callable[[float], None],
    clock: Callable[[], float] = time.time,
) -> Submitted:
    """Answers the task itself if no job is started, because a raised error counts as a failure of
    the function, for which there is an alarm. If the answer can't be sent, that error is raised,
    and the task fails with it.
    """
    submission = _Submission(
        owner=owner,
        token=token,
        services=services,
        settings=settings,
        now=now,
        sleep=sleep,
        clock=clock,
    )
    try:
        return Submitted(job_name=submission.submit())
    except StartLater as later:
        at = datetime.fromtimestamp(ceil(later.at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return submission.fail(later, json.dumps({"at": at}))
    except JobRefused as refused:
        if isinstance(owner, DataPreparation):
            fail_preparation(owner, token, str(refused), services)
        else:
            services.answers.succeed(
                token, {"outcome": refused.outcome.value, "message": str(refused)[:1000]}
            )
        return Submitted(answered=refused.outcome.value)
    except NextAttempt as error:
        return submission.fail(error, str(error))
    except AwsError as error:
        about = owner_text(owner)
        return submission.fail(temporary(error, about) or ServiceFault(about), f"{about}: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Submission:
    """One call of SubmitRun, for the task that waits with ``token``.

    ``now`` and ``clock`` are epoch seconds.
    """

    owner: AttemptOwner
    token: str
    services: SubmitRunServices
    settings: JobSettings
    now: float
    sleep: Callable[[float], None]
    clock: Callable[[], float]

    def fail(self, error: Exception, cause: str) -> Submitted:
        self.services.answers.fail(self.token, error_name=type(error).__name__, cause=cause)
        return Submitted(answered=type(error).__name__)

    def submit(self) -> str:
        suite = self.services.bucket.read_fixed(
            suite_key(self.owner.execution_id), read_stored_suite
        )
        execution = self._execution()
        known = row_of(self.owner, self.services)
        attempts = attempts_of(known, self.services.attempts)
        latest = attempts[-1] if attempts else None
        if latest and latest.end is None:
            # An earlier call stopped between writing the row and CreateTrainingJob. The job may
            # exist: do not start another. The sweep ends what an execution that is being stopped
            # has left.
            if execution.is_stopping:
                raise stopped_before(self.owner)
            if not self.services.attempts.hand_over(latest.job_name, self.token, now=self.now):
                raise ServiceFault(f"{latest.job_name} ended while another task took it over")
            self.services.jobs.start(self._request(suite, execution, latest.number, attempts))
            self._close_earlier(attempts[:-1])
            return latest.job_name
        shared = shared_runs_of(latest, self.services.bucket) if latest else None
        if latest and latest.end and (latest.end.outcome or (shared and not shared.left)):
            return self._answer_again(latest)
        terms = job_terms(self.owner, suite)
        self._refuse_late(suite, terms, execution)
        usd_per_hour = execution.prices[
            terms.instance_type
        ].usd_per_hour  # PlanSuite refuses a type without a price
        slot_at = self._reserve_slot(known.start_at)
        number = latest.number + 1 if latest else 1
        request = self._request(suite, execution, number, attempts)
        row = AttemptRow(
            job_name=job_name_of(request),
            owner=self.owner,
            number=number,
            is_last=_is_last(number, attempts, shared, suite),
            token=self.token,
            submitted_at=self.now,
            instance_count=terms.instance_count,
            max_job_seconds=terms.image_seconds + terms.max_job_seconds,
            usd_per_hour=usd_per_hour,
            reserved_usd=terms.worst_case_usd(usd_per_hour),
        )
        self._start(row, request, cap_usd=execution.max_usd, slot_at=slot_at)
        self._close_earlier(attempts)
        return row.job_name

    def _reserve_slot(self, noted: float | None) -> float | None:
        """When to send the request, in epoch seconds; None without a limit.

        A distant slot is stored, and the state machine waits for it.
        """
        between = self.settings.seconds_between_starts
        if not between:
            return None
        is_kept = noted is not None and self.now < noted + SLOT_KEPT_SECONDS
        slots = self.services.start_slots
        at = (
            noted
            if is_kept and noted is not None
            else slots.reserve(now=self.now, seconds_between=between)
        )
        if at > self.now + LONGEST_SLEEP_SECONDS:
            if not is_kept:
                self._rows.note_start(self.owner.execution_id, owner_id(self.owner), at)
            raise StartLater(at)
        return at

    def _start(
        self, row: AttemptRow, request: dict[str, Any], *, cap_usd: Decimal, slot_at: float | None
    ) -> None:
        """The row comes first: the event of the job's end may arrive before CreateTrainingJob has
        answered.
        """
        # Create the client now: it takes 0.5 s in a cold function, which would be lost from the
        # start slot.
        jobs = self.services.jobs
        place = (self.owner.execution_id, owner_id(self.owner), row.job_name)
        noting = self._rows.noting(*place)
        is_ours = reserve_worst_case(row, cap_usd=cap_usd, services=self.services, also=[noting])
        if slot_at is not None:
            self._wait(slot_at)
            if is_ours and self._execution().is_stopping:
                self.services.spending.withdraw(row, also=[self._rows.forgetting(*place)])
                raise stopped_before(self.owner)
        try:
            jobs.start(request)
        except ServiceFault:
            raise  # the job may exist: the row stays, and the next try takes it over
        except (JobRefused, NextAttempt):
            if is_ours:
                self.services.spending.withdraw(row, also=[self._rows.forgetting(*place)])
            raise

    def _wait(self, slot_at: float) -> None:
        """If the next slot has begun, the function reserves another one: otherwise two functions
        would send a request at the same time.
        """
        between = self.settings.seconds_between_starts
        while self.clock() - slot_at > between:
            slot_at = self.services.start_slots.reserve(now=self.clock(), seconds_between=between)
        self.sleep(max(0.0, slot_at - self.clock()))

    @property
    def _rows(self) -> OwnerRows[Any]:
        return rows_of(self.owner, self.services)

    def _close_earlier(self, attempts: Sequence[AttemptRow]) -> None:
        """FinishRun leaves the attempt of a shared job open until there is a next one."""
        for row in attempts:
            if row.is_open:
                self.services.attempts.close(row.job_name)

    def _answer_again(self, row: AttemptRow) -> str:
        """The task was started again by a fault after its job had ended."""
        if not isinstance(row.owner, DataPreparation):
            self.services.answers.succeed(self.token, {"job_name": row.job_name})
        elif answer_preparation(row.owner, self.token, self.services) is None:
            raise ServiceFault(f"{row.job_name} has ended, and its preparation has no result yet")
        return row.job_name

    def _execution(self) -> ExecutionRow:
        execution = self.services.executions.find(self.owner.execution_id)
        if execution is None:
            raise self._refused(
                Outcome.INTERNAL_ERROR, "expected the execution's row with the cap, found none"
            )
        return execution

    def _refuse_late(self, suite: Suite, terms: JobTerms, execution: ExecutionRow) -> None:
        if execution.is_stopping:
            raise stopped_before(self.owner)
        admission = admit_time(
            began=execution.started_at,
            now=self.now,
            max_hours=suite.limits.max_hours,
            max_job_seconds=terms.max_job_seconds,
        )
        if admission.decision is Decision.REFUSE:
            raise self._refused(Outcome.COST_STOPPED, admission.reason)

    def _refused(self, outcome: Outcome, reason: str) -> JobRefused:
        return JobRefused(outcome, not_started_text(self.owner, reason))

    def _request(
        self, suite: Suite, execution: ExecutionRow, number: int, attempts: Sequence[AttemptRow]
    ) -> dict[str, Any]:
        """It has the code and images that the suite was planned with, whatever was deployed or
        uploaded since. The document of a shared job, which its request names, is in the bucket when
        this returns.
        """
        if execution.script_s3_uri is not None:
            suite = replace(suite, workload=replace(suite.workload, source=execution.script_s3_uri))
        settings = replace(
            self.settings, source_s3_uri=execution.source_s3_uri, images=execution.images
        )
        match self.owner:
            case DataPreparation() as preparation:
                return build_preparation_request(
                    preparation, suite, attempt=number, settings=settings
                )
            case Run() as run:
                return build_training_job_request(run, suite, attempt=number, settings=settings)
            case Job() as job:
                cut_off = [row.job_name for row in attempts if _was_cut_off(row)]
                document = job_document(job, suite, settings, cut_off=cut_off)
                self.services.bucket.write_json(
                    job_document_key(job.execution_id, job.job_id), document
                )
                return build_shared_job_request(job, suite, attempt=number, settings=settings)


def _was_cut_off(row: AttemptRow) -> bool:
    """Whether the service or the lab ended the job, and not what ran in it."""
    if row.stopped_for is not None:
        return True
    end = row.end
    return end is not None and (end.was_cut_off or end.error == CapacityUnavailable.__name__)


def _is_last(
    number: int, attempts: Sequence[AttemptRow], shared: SharedRuns | None, suite: Suite
) -> bool:
    """Whether the suite allows no attempt after this one."""
    if shared is None:
        chained = sum(
            row.end is not None and row.end.error == JobTimeUsed.__name__ for row in attempts
        )
        return number - chained >= suite.limits.max_attempts
    idle = sum(not shared.journal(row.job_name).ends for row in attempts)
    return is_last_attempt(number, idle=idle + 1, max_attempts=suite.limits.max_attempts)
