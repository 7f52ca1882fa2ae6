"""What the store promises on any table and bucket: tests that run in memory and, in tests/local, on
MiniStack.
"""

import time
import uuid
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.lab_in_memory import NOW, PRICE
from tests.unit.run_samples import completed_result, make_cell
from tests.unit.store.samples import ROW, RUN
from traindyno.aws.objects import Objects, OriginalMissing
from traindyno.aws.table import Table
from traindyno.core.costs.summarise import summarise
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.suite.choices import GoalKind
from traindyno.store.attempts import AttemptRow, AttemptRows
from traindyno.store.executions import ExecutionRow, ExecutionRows, Judgement
from traindyno.store.owners import (
    PreparationRow,
    PreparationRows,
    PreparationSummary,
    RunRow,
    RunRows,
    SharedJobRow,
    SharedJobRows,
)
from traindyno.store.past_runs import WorkIndex
from traindyno.store.spending import Reservation, Spending, SpendingRow
from traindyno.store.start_slots import KEY, StartSlots

END = Attempt(
    number=1,
    job_name="",
    outcome=Outcome.COMPLETED,
    billable_seconds=12.5,
    phase_seconds={"training": 12.25},
    instance_type="ml.g5.xlarge",
)

RUNS = tuple(replace(RUN, run_id=f"r-t{trial}", trial=trial, job_id="j") for trial in (2, 1, 3))
OWNERS = [
    Job(execution_id="e", job_id="j", runs=RUNS),
    DataPreparation(execution_id="e", key="0" * 64, packing=False, instance="ml.m7i.xlarge"),
]


def usd(text: str) -> Decimal:
    return Decimal(text)


def execution_row(name: str) -> ExecutionRow:
    return ExecutionRow(
        execution_id=name,
        suite_name="quick-look",
        started_at=NOW + 0.25,
        latest_end=NOW + 3600.5,
        run_count=4,
        job_count=4,
        goal=GoalKind.CHEAPEST,
        max_usd=usd("50.10"),
        max_steps=200,
        trials=3,
        source_s3_uri="s3://results/code/e/sourcedir.tar.gz",
        prices={PRICE.instance_type: PRICE},
    )


class StoreContract:
    """The fixture ``table`` is the subclass's.

    Each test uses its own names, so that all can share one table.
    """

    @pytest.fixture
    def execution(self, table: Table) -> Iterator[str]:
        """An execution with a cap of 50.10 USD."""
        name = f"e-{uuid.uuid4().hex}"
        ExecutionRows(table).create(execution_row(name))
        yield name

    @pytest.fixture
    def attempt(self, table: Table, execution: str) -> AttemptRow:
        row = attempt_row(execution, "0.6")
        assert Spending(table).reserve(row, cap_usd=usd("50")) is Reservation.MADE
        return row

    def test_an_execution_reads_back_as_it_was_written_and_stays_as_it_was_first(
        self, table: Table, execution: str
    ) -> None:
        rows = ExecutionRows(table)
        assert rows.find(execution) == execution_row(execution)
        rows.create(replace(execution_row(execution), run_count=99))
        assert rows.find(execution) == execution_row(execution)
        assert rows.find("another") is None

    def test_an_execution_is_judged_and_stopped_beside_its_plan(
        self, table: Table, execution: str
    ) -> None:
        rows = ExecutionRows(table)
        judgement = Judgement(
            finding="recommended",
            headline="use it",
            recommended=None,
            is_simulated=False,
            run_count=4,
        )
        rows.judge(execution, judgement)
        rows.mark_stopping(execution)
        assert rows.find(execution) == replace(
            execution_row(execution), judgement=judgement, is_stopping=True
        )

    def test_an_execution_without_a_row_has_nothing_to_stop(self, table: Table) -> None:
        name = f"refused-{uuid.uuid4().hex}"
        ExecutionRows(table).mark_stopping(name)
        assert ExecutionRows(table).find(name) is None

    def test_the_first_reservation_is_refused_over_the_cap_like_every_other(
        self, table: Table, execution: str
    ) -> None:
        spending = Spending(table)
        first = attempt_row(execution, "50.2")
        second = attempt_row(execution, "50.1")
        assert spending.reserve(first, cap_usd=usd("50.1")) is Reservation.NO_ROOM
        assert spending.read(execution) == SpendingRow()
        assert spending.reserve(second, cap_usd=usd("50.1")) is Reservation.MADE
        assert (
            spending.reserve(attempt_row(execution, "0.000001"), cap_usd=usd("50.1"))
            is Reservation.NO_ROOM
        )
        assert spending.read(execution).exposed_usd == usd("50.1")
        assert {row.job_name for row in AttemptRows(table).list_open(execution)} == {
            second.job_name
        }

    def test_nothing_is_reserved_for_another_job_once_the_execution_is_being_stopped(
        self, table: Table, execution: str
    ) -> None:
        spending = Spending(table)
        rows = ExecutionRows(table)
        running = attempt_row(execution, "0.3")
        late = attempt_row(execution, "0.3")
        assert spending.reserve(running, cap_usd=usd("1")) is Reservation.MADE
        rows.mark_stopping(execution)
        assert spending.reserve(late, cap_usd=usd("1")) is Reservation.STOPPING
        assert AttemptRows(table).find(late.job_name) is None
        assert spending.reserve_more(running, usd("0.5"), cap_usd=usd("1")) is Reservation.MADE
        assert spending.read(execution).exposed_usd == usd("0.5")

    def test_reservations_at_once_never_pass_the_cap_together(
        self, table: Table, execution: str
    ) -> None:
        spending = Spending(table)
        rows = [attempt_row(execution, "0.3") for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            given = list(pool.map(lambda row: spending.reserve(row, cap_usd=usd("1")), rows))
        assert Counter(given) == {Reservation.MADE: 3, Reservation.NO_ROOM: 5}
        assert spending.read(execution).exposed_usd == usd("0.9")

    def test_attempt_is_created_and_its_worst_case_reserved_once_for_repeated_calls(
        self, table: Table, execution: str
    ) -> None:
        spending = Spending(table)
        row = attempt_row(execution, "0.3")
        with ThreadPoolExecutor(4) as pool:
            given = list(pool.map(lambda _: spending.reserve(row, cap_usd=usd("10")), range(4)))
        assert Counter(given) == {Reservation.MADE: 1, Reservation.ROW_REFUSED: 3}
        assert spending.read(execution).exposed_usd == usd("0.3")
        assert spending.withdraw(row)
        assert not spending.withdraw(row)
        assert spending.read(execution).exposed_usd == 0
        assert AttemptRows(table).find(row.job_name) is None

    def test_jobs_of_a_run_are_noted_with_their_reservation_or_not_at_all(
        self, table: Table, execution: str
    ) -> None:
        spending = Spending(table)
        runs = RunRows(table)
        row = attempt_row(execution, "0.3")
        noting = runs.noting(execution, "r", row.job_name)
        runs.note_start(execution, "r", NOW + 0.5)
        assert spending.reserve(row, cap_usd=usd("0.2"), also=[noting]) is Reservation.NO_ROOM
        assert runs.read(execution, "r") == RunRow(
            execution_id=execution, owner_id="r", start_at=NOW + 0.5
        )
        assert spending.reserve(row, cap_usd=usd("1"), also=[noting]) is Reservation.MADE
        assert runs.read(execution, "r") == RunRow(
            execution_id=execution, owner_id="r", jobs=frozenset({row.job_name})
        )
        assert spending.withdraw(row, also=[runs.forgetting(execution, "r", row.job_name)])
        assert runs.read(execution, "r").jobs == frozenset()

    def test_spending_replaces_its_reservation_rounded_up_to_a_millionth(
        self, table: Table, execution: str
    ) -> None:
        spending = Spending(table)
        row = attempt_row(execution, "0.3333333333")
        spending.reserve(row, cap_usd=usd("10"))
        assert spending.read(execution).exposed_usd == usd("0.333334")
        end = replace(END, job_name=row.job_name)
        assert spending.end(row, end, usd("0.2"))
        assert not spending.end(row, replace(end, outcome=Outcome.TIMED_OUT), usd("0.2"))
        assert spending.read(execution) == SpendingRow(exposed_usd=usd("0.2"), spent_usd=usd("0.2"))
        assert AttemptRows(table).find(row.job_name) == replace(row, end=end)

    def test_an_end_without_a_known_cost_keeps_its_reservation(
        self, table: Table, execution: str
    ) -> None:
        spending = Spending(table)
        row = attempt_row(execution, "0.3")
        spending.reserve(row, cap_usd=usd("10"))
        assert spending.end(row, replace(END, job_name=row.job_name), None)
        assert spending.read(execution) == SpendingRow(exposed_usd=usd("0.3"))

    def test_a_running_job_gets_more_within_the_cap_and_its_end_settles_all_of_it(
        self, table: Table, execution: str
    ) -> None:
        spending = Spending(table)
        row = attempt_row(execution, "0.3")
        spending.reserve(row, cap_usd=usd("1"))
        assert spending.reserve_more(row, usd("0.9"), cap_usd=usd("0.8")) is Reservation.NO_ROOM
        assert spending.reserve_more(row, usd("1.4"), cap_usd=usd("1")) is Reservation.NO_ROOM
        assert spending.reserve_more(row, usd("0.7"), cap_usd=usd("1")) is Reservation.MADE
        # the row was read before, and what is asked for would not fit either
        assert spending.reserve_more(row, usd("0.8"), cap_usd=usd("1")) is Reservation.ROW_REFUSED
        assert spending.read(execution).exposed_usd == usd("0.7")
        end = replace(END, job_name=row.job_name)
        assert not spending.end(row, end, usd("0.5"))
        held = replace(row, reserved_usd=usd("0.7"))
        assert spending.end(held, end, usd("0.5"))
        assert (
            spending.reserve_more(held, usd("0.9"), cap_usd=usd("1")) is Reservation.ROW_REFUSED
        ), "the job has ended"
        assert spending.read(execution) == SpendingRow(exposed_usd=usd("0.5"), spent_usd=usd("0.5"))

    def test_a_run_gets_its_summary_once_and_keeps_its_jobs(
        self, table: Table, execution: str
    ) -> None:
        result = completed_result(make_cell(), 2)
        summary = summarise(result)
        run_id = result.run.run_id
        rows = RunRows(table)
        table.write_all([rows.noting(execution, run_id, "job-1")])
        assert not rows.read(execution, run_id).is_over
        assert rows.record(execution, run_id, summary)
        assert not rows.record(execution, run_id, replace(summary, outcome=Outcome.TIMED_OUT))
        row = rows.read(execution, run_id)
        assert (row.summary, row.jobs) == (summary, frozenset({"job-1"}))

    def test_a_run_has_a_summary_however_long_and_odd_its_message(
        self, table: Table, execution: str
    ) -> None:
        """DynamoDB takes items of up to 400 KB, in UTF-8."""
        rows = RunRows(table)
        odd = replace(summarise(completed_result(make_cell(), 2)), message="\ud800" + "é" * 500_000)
        assert rows.record(execution, "r", odd)
        expected = replace(odd, message="?" + "é" * 3_999)
        assert rows.read(execution, "r").summary == expected

    def test_runs_shared_jobs_and_preparations_are_listed_apart(
        self, table: Table, execution: str
    ) -> None:
        """Lists of runs don't show the row of a job that several of them share."""
        runs = RunRows(table)
        jobs = SharedJobRows(table)
        preparations = PreparationRows(table)
        noted = [runs.noting(execution, name, f"job-{name}") for name in ("b", "a")]
        also = [preparations.noting(execution, "p", "job-p"), jobs.noting(execution, "j", "job-j")]
        table.write_all([*noted, *also])
        assert [row.owner_id for row in runs.list_all(execution)] == ["a", "b"]
        assert [row.owner_id for row in preparations.list_all(execution)] == ["p"]
        expected = SharedJobRow(execution_id=execution, owner_id="j", jobs=frozenset({"job-j"}))
        assert list(jobs.list_all(execution)) == [expected]
        assert list(runs.list_all(f"{execution}-other")) == []

    def test_a_preparation_gets_its_summary_once(self, table: Table, execution: str) -> None:
        rows = PreparationRows(table)
        summary = PreparationSummary(outcome=Outcome.COMPLETED, billable_seconds=300.5)
        assert rows.record(execution, "p", summary)
        assert not rows.record(execution, "p", replace(summary, outcome=Outcome.TIMED_OUT))
        expected = PreparationRow(execution_id=execution, owner_id="p", summary=summary)
        assert rows.read(execution, "p") == expected

    @pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: type(owner).__name__)
    def test_an_attempt_belongs_to_a_shared_job_or_a_preparation_too(
        self, table: Table, execution: str, owner: Job | DataPreparation
    ) -> None:
        row = replace(attempt_row(execution, "0.3"), owner=replace(owner, execution_id=execution))
        assert Spending(table).reserve(row, cap_usd=usd("1")) is Reservation.MADE
        assert AttemptRows(table).find(row.job_name) == row

    def test_an_attempt_reads_back_as_it_was_written_and_is_created_once(
        self, table: Table, attempt: AttemptRow
    ) -> None:
        rows = AttemptRows(table)
        assert rows.find(attempt.job_name) == attempt
        again = Spending(table).reserve(replace(attempt, token="other"), cap_usd=usd("50"))
        assert again is Reservation.ROW_REFUSED
        assert rows.find(attempt.job_name) == attempt
        assert rows.find("another") is None

    def test_open_attempt_takes_a_new_token_and_a_reason_to_stop(
        self, table: Table, attempt: AttemptRow
    ) -> None:
        rows = AttemptRows(table)
        name = attempt.job_name
        assert rows.hand_over(name, "u", now=NOW + 0.25)
        assert rows.note_stop(name, Outcome.COST_STOPPED)
        assert rows.find(name) == replace(
            attempt, token="u", submitted_at=NOW + 0.25, stopped_for=Outcome.COST_STOPPED
        )

    def test_what_was_known_of_an_attempt_before_another_task_took_it_over_ends_nothing(
        self, table: Table, execution: str, attempt: AttemptRow
    ) -> None:
        spending = Spending(table)
        rows = AttemptRows(table)
        exposed = spending.read(execution)
        assert rows.hand_over(attempt.job_name, attempt.token, now=NOW + 0.25)
        assert not spending.withdraw(attempt)
        assert not spending.end(attempt, replace(END, job_name=attempt.job_name), usd("0.1"))
        taken = replace(attempt, submitted_at=NOW + 0.25)
        assert rows.find(attempt.job_name) == taken
        assert spending.read(execution) == exposed
        assert spending.withdraw(taken)

    def test_nothing_changes_after_an_attempts_end(self, table: Table, attempt: AttemptRow) -> None:
        rows = AttemptRows(table)
        name = attempt.job_name
        end = replace(END, job_name=name)
        assert Spending(table).end(attempt, end, None)
        assert not rows.hand_over(name, "u", now=NOW)
        assert not rows.note_stop(name, Outcome.TIMED_OUT)
        assert rows.find(name) == replace(attempt, end=end)

    def test_a_missing_attempt_changes_nothing(self, table: Table, execution: str) -> None:
        row = attempt_row(execution, "0.3")
        rows = AttemptRows(table)
        spending = Spending(table)
        assert not rows.hand_over(row.job_name, "u", now=NOW)
        assert not spending.end(row, replace(END, job_name=row.job_name), usd("0.1"))
        assert not spending.withdraw(row)
        rows.close(row.job_name)
        assert rows.find(row.job_name) is None
        assert spending.read(execution) == SpendingRow()

    def test_open_attempts_are_found_by_their_execution_until_they_are_closed(
        self, table: Table, execution: str, attempt: AttemptRow
    ) -> None:
        rows = AttemptRows(table)
        second = attempt_row(execution, "0.6")
        Spending(table).reserve(second, cap_usd=usd("50"))
        assert {row.job_name for row in rows.list_open(execution)} == {
            attempt.job_name,
            second.job_name,
        }
        assert attempt in list(rows.list_open())
        rows.close(attempt.job_name)
        assert list(rows.list_open(execution)) == [second]
        assert rows.find(attempt.job_name) == replace(attempt, is_open=False)
        Spending(table).withdraw(second)
        assert list(rows.list_open(execution)) == []

    def test_executions_of_the_same_work_are_listed_once_each_the_latest_first(
        self, table: Table
    ) -> None:
        index = WorkIndex(table)
        work = uuid.uuid4().hex
        for seconds, name in ((10, "a"), (20, "a"), (30, "b"), (1, "c")):
            index.note(work, name, started_at=1_790_000_000 + seconds)
        assert index.list_executions(work, 5) == ["b", "a", "c"]
        assert index.list_executions(work, 2) == ["b", "a"]
        assert index.list_executions(f"{work}0", 2) == []

    def test_start_slots_are_apart_however_many_ask_at_once(self, table: Table) -> None:
        table.delete(KEY)
        slots = StartSlots(table)
        with ThreadPoolExecutor(4) as pool:
            given = sorted(
                pool.map(lambda _: slots.reserve(now=NOW, seconds_between=1.05), range(8))
            )
        assert given == pytest.approx([NOW + 1.05 * number for number in range(8)])
        assert slots.reserve(now=NOW + 100, seconds_between=1.05) == NOW + 100
        slots.free(now=NOW + 100.5)
        assert slots.reserve(now=NOW + 100.5, seconds_between=1.05) == NOW + 100.5


def attempt_row(execution: str, reserved_usd: str) -> AttemptRow:
    owner = replace(RUN, execution_id=execution)
    return replace(
        ROW, job_name=f"job-{uuid.uuid4().hex}", owner=owner, reserved_usd=usd(reserved_usd)
    )


class ObjectsContract:
    """The fixture ``objects`` is the subclass's."""

    def test_an_object_is_found_as_it_was_written_last(self, objects: Objects) -> None:
        key = f"contract/{uuid.uuid4().hex}"
        assert objects.find(key) is None
        objects.write(key, b"one", "text/plain")
        objects.write(key, b"two", "text/plain")
        assert objects.find(key) == b"two"
        assert objects.find(key, last_bytes=2) == b"wo"
        assert objects.find(key, last_bytes=20) == b"two"

    def test_an_object_is_found_in_parts_up_to_its_end(self, objects: Objects) -> None:
        key = f"contract/{uuid.uuid4().hex}"
        assert objects.find_part(key, 0, 2) is None
        objects.write(key, b"12345", "text/plain")
        assert [objects.find_part(key, first, 2) for first in (0, 2, 4, 5, 9)] == [
            b"12",
            b"34",
            b"5",
            b"",
            b"",
        ]
        objects.write(key, b"", "text/plain")
        assert objects.find_part(key, 0, 2) == b""

    def test_a_copy_keeps_its_key_when_the_original_changes(self, objects: Objects) -> None:
        key = f"contract/{uuid.uuid4().hex}"
        objects.write(key, b"one", "text/plain")
        assert (
            objects.copy(f"s3://{objects.name}/{key}", f"{key}-copy")
            == f"s3://{objects.name}/{key}-copy"
        )
        objects.write(key, b"two", "text/plain")
        assert objects.find(f"{key}-copy") == b"one"

    def test_a_copy_of_nothing_says_so(self, objects: Objects) -> None:
        key = f"contract/{uuid.uuid4().hex}"
        with pytest.raises(OriginalMissing, match=key):
            objects.copy(f"s3://{objects.name}/{key}", f"{key}-copy")
        assert objects.find(f"{key}-copy") is None

    def test_keys_are_listed_by_prefix_and_in_order(self, objects: Objects) -> None:
        prefix = f"contract/{uuid.uuid4().hex}/"
        for name in ("b", "a/2", "a/1"):
            objects.write(f"{prefix}{name}", name.encode(), "text/plain")
        assert list(objects.list_keys(prefix)) == [
            f"{prefix}{name}" for name in ("a/1", "a/2", "b")
        ]
        assert list(objects.list_keys(f"{prefix}a/")) == [f"{prefix}a/1", f"{prefix}a/2"]
        assert list(objects.list_keys(f"{prefix}none")) == []
        assert list(objects.list_sizes(prefix)) == [
            (f"{prefix}a/1", 3),
            (f"{prefix}a/2", 3),
            (f"{prefix}b", 1),
        ]

    def test_a_large_copy_and_a_deletion_leave_the_original(self, objects: Objects) -> None:
        objects.write("large/original", b"weights", "application/gzip")
        assert objects.copy_large("large/original", "large/copy")
        assert objects.find("large/copy") == b"weights"
        objects.delete("large/copy")
        objects.delete("large/copy")
        assert objects.find("large/copy") is None
        assert objects.find("large/original") == b"weights"
        assert not objects.copy_large("large/nothing", "large/copy")

    def test_a_renewed_object_stays_as_it_is(self, objects: Objects) -> None:
        prefix = f"contract/{uuid.uuid4().hex}/"
        objects.write(f"{prefix}a", b"text", "text/plain")
        objects.renew(prefix, before=time.time() + 86_400)
        assert objects.find(f"{prefix}a") == b"text"
