"""Start one attempt's training job, once its start slot and its worst-case cost are reserved."""

from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from traindyno.aws.training_jobs import JobRefused, TrainingJobs
from traindyno.core.errors import NextAttempt, ServiceFault, StartLater
from traindyno.core.jobs.job import AttemptOwner, owner_id, owner_text
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.job_terms import JobTerms
from traindyno.lab.attempt_owners import OwnerServices, rows_of
from traindyno.lab.budget import BudgetServices, reserve_worst_case
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.store.attempts import AttemptRow
from traindyno.store.executions import ExecutionRow
from traindyno.store.owners import OwnerRows
from traindyno.store.spending import Spending
from traindyno.store.start_slots import StartSlot, StartSlots


def planned_price(owner: AttemptOwner, terms: JobTerms, execution: ExecutionRow) -> Decimal:
    """The price of one instance, as the suite was planned."""
    price = execution.prices.get(terms.instance_type)
    if price is None:
        raise JobRefused(
            Outcome.INTERNAL_ERROR, f"{owner_text(owner)}: its execution has no price of {terms.instance_type}"
        )
    return price.usd_per_hour


def new_attempt(
    owner: AttemptOwner,
    terms: JobTerms,
    usd_per_hour: Decimal,
    *,
    job_name: str,
    number: int,
    is_last: bool,
    token: str,
    submitted_at: float,
) -> AttemptRow:
    """The attempt with what it reserves under the cap: its worst case."""
    return AttemptRow(
        job_name=job_name,
        owner=owner,
        number=number,
        is_last=is_last,
        token=token,
        submitted_at=submitted_at,
        instance_count=terms.instance_count,
        max_job_seconds=terms.image_seconds + terms.max_job_seconds,
        usd_per_hour=usd_per_hour,
        reserved_usd=terms.worst_case_usd(usd_per_hour),
    )


# A waiting function is billed; a waiting state costs two transitions.
LONGEST_SLEEP_SECONDS = 5.0
# A job that is later than this for its start slot reserves another one.
SLOT_KEPT_SECONDS = 30.0


class AttemptStartServices(OwnerServices, BudgetServices, Protocol):
    start_slots: StartSlots
    spending: Spending
    jobs: TrainingJobs


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptStart:
    """``now`` and ``clock`` are epoch seconds; ``sleep`` waits until the start slot."""

    owner: AttemptOwner
    services: AttemptStartServices
    settings: JobSettings
    now: float
    sleep: Callable[[float], None]
    clock: Callable[[], float]

    def reserve_slot(self, noted: float | None) -> StartSlot | None:
        """None without a limit. A distant slot is stored, and the state machine waits for it."""
        between = self.settings.seconds_between_starts
        if not between:
            return None
        is_kept = noted is not None and self.now < noted + SLOT_KEPT_SECONDS
        slots = self.services.start_slots
        at = noted if is_kept and noted is not None else slots.reserve(now=self.now, seconds_between=between)
        if at > self.now + LONGEST_SLEEP_SECONDS:
            if not is_kept:
                self._rows.note_start(self.owner.execution_id, owner_id(self.owner), at)
            raise StartLater(at)
        return StartSlot(at=at, slots=slots, seconds_between=between, clock=self.clock, sleep=self.sleep)

    def start(self, row: AttemptRow, request: dict[str, Any], *, cap_usd: Decimal, slot: StartSlot | None) -> str:
        """The row comes first: the event of the job's end may arrive before CreateTrainingJob has answered."""
        # Create the client now: it takes 0.5 s in a cold function, which would be lost from the start slot.
        jobs = self.services.jobs
        place = (self.owner.execution_id, owner_id(self.owner), row.job_name)
        noting = self._rows.noting(*place)
        is_ours = reserve_worst_case(row, cap_usd=cap_usd, services=self.services, also=[noting])
        if slot:
            slot.wait()
        try:
            jobs.start(request)
        except ServiceFault:
            raise  # the job may exist: the row stays, and the next try takes it over
        except (JobRefused, NextAttempt):
            if is_ours:
                self.services.spending.withdraw(row, also=[self._rows.forgetting(*place)])
            raise
        return row.job_name

    @property
    def _rows(self) -> OwnerRows[Any]:
        return rows_of(self.owner, self.services)
