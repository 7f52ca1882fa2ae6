"""Attempts whose rows were lost, written again from their jobs and from the documents of their execution."""

from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from traindyno.aws.training_jobs import TrainingJobs
from traindyno.core.jobs.job import AttemptOwner, owner_id, parse_owner, runs_of
from traindyno.core.planning.job_terms import job_terms
from traindyno.core.planning.plan import Plan, prices_of, read_stored_plan
from traindyno.core.planning.preparation_plan import due_preparations
from traindyno.core.planning.wave_items import WAVE_ITEM
from traindyno.core.s3_keys import SUITES_PREFIX, execution_code_key, plan_key, rounds_prefix, s3_uri, suite_key
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.lab.attempt_owners import OwnerServices
from traindyno.lab.new_attempt import new_attempt, price_types
from traindyno.lab.plan_suite import PlanSuiteServices, note_execution, planned_execution
from traindyno.sagemaker.job_names import digest_in, execution_digest
from traindyno.sagemaker.job_origin import JobOrigin
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRow, ExecutionRows
from traindyno.store.results_bucket import ResultsBucket

# No task waits for the job any more: its execution has ended.
NO_TASK = "its-task-has-ended"


class LostAttemptServices(PlanSuiteServices, OwnerServices, Protocol):
    """``bucket`` holds the suite, the plan and the rounds of each execution."""

    bucket: ResultsBucket
    executions: ExecutionRows
    attempts: AttemptRows
    jobs: TrainingJobs


def restore_attempts(
    job_names: Sequence[str], working: Container[str], *, services: LostAttemptServices
) -> tuple[Mapping[str, int], tuple[str, ...]]:
    """How many rows were written for each execution; and the jobs, of those that are still ``working``, whose execution
    has no documents: they are stopped.
    """
    restored, unclaimed = Counter[str](), list[str]()
    documents = {each.digest: each for each in _list_documents(services)} if job_names else {}
    for name in job_names:
        known = documents.get(digest_in(name) or "")
        origin = services.jobs.find_origin(name) if known else None
        row = known.attempt(origin) if known and origin else None
        if row is not None:
            restored[row.owner.execution_id] += services.attempts.restore(row)
        elif name in working:
            services.jobs.stop(name)
            unclaimed.append(name)
    return +restored, tuple(unclaimed)


def _list_documents(services: LostAttemptServices) -> Iterator["_Documents"]:
    for key in services.bucket.list_keys(SUITES_PREFIX):
        execution_id, _, _ = key.removeprefix(SUITES_PREFIX).partition("/")
        if key == suite_key(execution_id):
            yield _Documents(execution_id, services)


@dataclass
class _Documents:
    """What the bucket still holds of one execution."""

    execution_id: str
    services: LostAttemptServices

    @property
    def digest(self) -> str:
        return execution_digest(self.execution_id)

    def attempt(self, job: JobOrigin) -> AttemptRow | None:
        """None for a job of another execution, or if documents are gone."""
        owner = self._owners.get(job.owner_id) if job.execution_id == self.execution_id else None
        if owner is None or self._suite is None or self._plan is None:
            return None
        execution = self._execution(self._suite, self._plan, job.created_at)
        placed_on = job.instance_type if _has_choice(owner, self._suite) else None
        terms = job_terms(owner, self._suite, placed_on=placed_on)
        return new_attempt(
            owner,
            terms,
            price_types(owner, terms, execution),
            job_name=job.job_name,
            number=job.number,
            is_last=job.number >= self._suite.limits.max_attempts,
            token=NO_TASK,
            submitted_at=job.created_at,
            placed_on=placed_on,
        )

    def _execution(self, suite: Suite, plan: Plan, began: float) -> ExecutionRow:
        """The execution's row; written again if it was lost too, with the first job's creation as its beginning."""
        found = self.services.executions.find(self.execution_id)
        if found is not None:
            return found
        source = s3_uri(self.services.bucket.name, execution_code_key(self.execution_id))
        row = planned_execution(suite, plan, source_s3_uri=source, prices=prices_of(plan), now=began)
        note_execution(suite, row, services=self.services)
        return row

    @cached_property
    def _suite(self) -> Suite | None:
        return self.services.bucket.find_as(suite_key(self.execution_id), read_stored_suite)

    @cached_property
    def _plan(self) -> Plan | None:
        return self.services.bucket.find_as(plan_key(self.execution_id), read_stored_plan)

    @cached_property
    def _owners(self) -> dict[str, AttemptOwner]:
        """The runs and shared jobs of all rounds, and the preparations of the plan, by id."""
        return {owner_id(owner): owner for owner in self._list_owners()}

    def _list_owners(self) -> Iterator[AttemptOwner]:
        for key in self.services.bucket.list_keys(rounds_prefix(self.execution_id)):
            for item in self.services.bucket.read_json(key):
                yield parse_owner(WAVE_ITEM.read(item))
        if self._plan is not None:
            yield from due_preparations(self._plan.preparation, self.execution_id)


def _has_choice(owner: AttemptOwner, suite: Suite) -> bool:
    """Whether its runs may use several types. A job with one type then has that of an earlier attempt."""
    return any(run.cell.settings.instance in suite.instance_preferences for run in runs_of(owner))
