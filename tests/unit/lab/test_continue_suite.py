"""An execution that continues another one: its results, its spending and its code count on."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.cli.test_finish import ENDED
from tests.unit.dying import Calls, deaths
from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, like, no_sleep
from tests.unit.planned_lab import (
    OWN_SECONDS,
    START_SECONDS,
    Carried,
    empty_lab,
    items_of_round,
    judge_execution,
    measure,
    runs_of_item,
    take_in,
)
from tests.unit.suites import script_document, unprepared_document
from traindyno.cli.inputs.execution_receipt import load_receipt
from traindyno.core.errors import SuiteInvalid, SuiteRefused
from traindyno.core.jobs.job import owner_id, parse_owner
from traindyno.core.jobs.outcome import OWN_FAILURES, Outcome
from traindyno.core.measurement.run_result import run_result_document
from traindyno.core.s3_keys import result_key
from traindyno.core.suite.choices import Compiler
from traindyno.core.verdict.verdict import Verdict
from traindyno.lab.continue_suite import CONTINUES
from traindyno.lab.submit_run import submit_run
from traindyno.store.results import load_planned_runs, load_results
from traindyno.store.spending import SpendingRow

NEXT = "execution-2"
LAST = "execution-3"
WIDE = {"compiler": ["none", "inductor"], "batch_size_per_device": [1, 2]}
ESTIMATED = {"examples": 1000, "sequence_length": 128, "cells": {}}
SEARCHES: Mapping[str, Mapping[str, Any]] = {
    "grid": {"measurement": {"trials": 2, "jobs": "separate"}},
    "grid in shared jobs": {"measurement": {"trials": 3}, "matrix": WIDE},
    "race": {"search": "race", "measurement": {"trials": 3, "jobs": "separate"}, "matrix": WIDE},
    "race in shared jobs": {"search": "race", "measurement": {"trials": 3}, "matrix": WIDE},
}


def document_of(kind: str, **limits: Any) -> dict[str, Any]:
    document = unprepared_document(**SEARCHES[kind])
    return {**document, "limits": {**document["limits"], **limits}}


def carried_by(item: Mapping[str, Any]) -> dict[str, Carried]:
    """Each cell has its own time of a step."""
    carried = {}
    for run in runs_of_item(item):
        settings = run.cell.settings
        compiled = 1.5 if settings.compiler is Compiler.INDUCTOR else 1.0
        seconds = 0.5 * compiled * (1.4 if settings.batch_size_per_device == 2 else 1.0)
        carried[run.run_id] = Carried(step_seconds=(seconds,) * 40)
    return carried


def work_on(lab: MemoryLab, execution_id: str, most_jobs: int = 99) -> int:
    """The jobs that ended: all, or as many until the execution is stopped."""
    rounds = jobs = 0
    while items := items_of_round(lab, rounds, execution_id):
        for item in items:
            if jobs == most_jobs:
                return jobs
            measure(lab, item, host_id=f"host-{jobs}", carried=carried_by(item))
            jobs += 1
        rounds += 1
    return jobs


def judged(lab: MemoryLab, execution_id: str) -> Verdict:
    return judge_execution(lab, execution_id)


def go_on(
    lab: MemoryLab, document: Any, execution_id: str = NEXT, earlier: str = EXECUTION
) -> None:
    take_in(lab, {**document, CONTINUES: earlier}, execution_id=execution_id)


def refusal(lab: MemoryLab, document: Any, execution_id: str = NEXT) -> str:
    before = dict(lab.objects.contents), dict(lab.table.items)
    with pytest.raises(SuiteRefused) as caught:
        go_on(lab, document, execution_id)
    assert (lab.objects.contents, lab.table.items) == before
    return str(caught.value)


@pytest.mark.parametrize("kind", SEARCHES)
def test_wherever_an_execution_was_stopped_each_run_is_measured_and_paid_once(kind: str) -> None:
    """In the end the verdict is that of an execution that was not stopped."""
    whole = empty_lab()
    take_in(whole, document_of(kind))
    most = work_on(whole, EXECUTION)
    expected = judged(whole, EXECUTION)
    for stopped_after in range(most + 1):
        lab = empty_lab()
        take_in(lab, document_of(kind))
        assert work_on(lab, EXECUTION, stopped_after) == stopped_after
        before = {result.run.run_id for result in load_results(lab.bucket, EXECUTION)}
        go_on(lab, document_of(kind, max_usd=60))
        work_on(lab, NEXT)
        results = load_results(lab.bucket, NEXT)
        own = {result.run.run_id for result in results if result.run.execution_id == NEXT}
        assert own.isdisjoint(before)
        assert {result.run.run_id for result in results} == own | before
        verdict = judged(lab, NEXT)
        assert verdict.finding is expected.finding
        assert verdict.recommended == expected.recommended
        if "race" not in kind:
            assert [row.outcomes for row in verdict.rows] == [row.outcomes for row in expected.rows]
            row = lab.executions.find(NEXT)
            assert row is not None
            assert row.judgement is not None
            assert row.run_count == row.judgement.run_count == len(own)
        seconds = START_SECONDS * len(lab.jobs.jobs) + OWN_SECONDS * len(results)
        paid = load_receipt(replace(ENDED, execution_id=NEXT), services=lab.services).receipt
        exact = sum((line.exact_usd or Decimal(0) for line in paid.lines), Decimal(0))
        assert exact == pytest.approx(Decimal(seconds) * Decimal("1.20") / 3600)
        assert lab.spending.read(NEXT).spent_usd == pytest.approx(exact, abs=Decimal("0.0001"))


def test_the_amount_covers_both_and_the_first_one_starts_no_further_job() -> None:
    lab = empty_lab()
    take_in(lab, document_of("grid"))
    items = items_of_round(lab)
    measure(lab, items[0])
    spent = lab.spending.read(EXECUTION).spent_usd
    go_on(lab, document_of("grid", max_usd=70))
    row = lab.executions.find(NEXT)
    assert row is not None
    assert (row.max_usd, lab.spending.read(NEXT).exposed_usd) == (Decimal(70), spent)
    owner = parse_owner(items[1])
    answer = submit_run(
        owner, owner_id(owner), services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep
    )
    assert answer.answered == Outcome.STOPPED_BY_USER.value
    # PlanSuite is called again after a fault
    go_on(lab, document_of("grid", max_usd=70))
    assert lab.spending.read(NEXT).spent_usd == spent


def test_it_has_the_code_and_the_images_of_the_first_one() -> None:
    lab = empty_lab()
    take_in(lab, document_of("grid"))
    code = f"code/{EXECUTION}/sourcedir.tar.gz"
    lab.objects.contents[code] = b"the code before"
    lab.plan(images={"cpu": "before"})
    go_on(lab, document_of("grid"))
    row = lab.executions.find(NEXT)
    assert row is not None
    assert (row.images, row.continues) == ({"cpu": "before"}, EXECUTION)
    assert lab.objects.contents[f"code/{NEXT}/sourcedir.tar.gz"] == b"the code before"
    del lab.objects.contents[f"code/{NEXT}/sourcedir.tar.gz"]
    with pytest.raises(SuiteRefused, match="the code of an execution is kept for 90 days"):
        go_on(lab, document_of("grid"), LAST, NEXT)
    assert lab.executions.find(LAST) is None


def test_a_chain_of_executions_has_one_end() -> None:
    lab = empty_lab()
    take_in(lab, document_of("grid"))
    measure(lab, items_of_round(lab)[0])
    go_on(lab, document_of("grid"))
    measure(lab, items_of_round(lab, 0, NEXT)[0])
    assert refusal(lab, document_of("grid"), LAST) == (
        f"{EXECUTION} is continued by {NEXT} already: continue {NEXT}"
    )
    go_on(lab, document_of("grid"), LAST, NEXT)
    assert work_on(lab, LAST) == 2
    receipt = load_receipt(replace(ENDED, execution_id=LAST), services=lab.services).receipt
    assert receipt.job_count == len(lab.jobs.jobs) == 4


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"measurement": {"trials": 3, "jobs": "separate"}}, ["measurement.trials"]),
        ({"matrix": WIDE}, ["matrix.batch_size_per_device"]),
        ({"goal": "fastest", "name": "other"}, ["name", "goal"]),
        ({"estimates": ESTIMATED}, ["estimates"]),
    ],
)
def test_another_suite_is_refused_by_its_different_fields(
    change: Mapping[str, Any], fields: list[str]
) -> None:
    lab = empty_lab()
    take_in(lab, document_of("grid"))
    text = refusal(lab, {**document_of("grid"), **change})
    said = [line.partition(":")[0] for line in text.splitlines()]
    assert sorted(said) == sorted(fields)
    assert f"it is another one than in {EXECUTION}: only limits may differ" in text


def test_another_script_is_refused() -> None:
    lab = empty_lab()
    document = script_document()
    for digest in ("0a1b", "2c3d"):
        lab.objects.contents[f"code/{digest}/sourcedir.tar.gz"] = digest.encode()
    before = {**document["workload"], "source": "s3://results/code/0a1b/sourcedir.tar.gz"}
    after = {**before, "source": "s3://results/code/2c3d/sourcedir.tar.gz"}
    take_in(lab, {**document, "workload": before})
    assert refusal(lab, {**document, "workload": after}).startswith("workload.source: ")
    go_on(lab, {**document, "workload": before})


def test_a_used_up_amount_and_an_unknown_execution_are_refused(snapshot: Snapshot) -> None:
    lab = empty_lab()
    take_in(lab, document_of("grid"))
    lab.expose(Decimal(60))
    snapshot(refusal(lab, document_of("grid")))
    with pytest.raises(SuiteRefused, match="nothing-1 started no job in this lab"):
        go_on(lab, document_of("grid"), NEXT, "nothing-1")
    with pytest.raises(SuiteInvalid):
        take_in(lab, [CONTINUES])


@pytest.fixture(scope="module")
def measured() -> MemoryLab:
    lab = empty_lab()
    take_in(lab, document_of("grid"))
    work_on(lab, EXECUTION)
    return lab


@pytest.mark.parametrize("more_seconds", [0, 60])
@pytest.mark.parametrize("outcome", Outcome)
def test_a_run_ended_by_a_limit_or_a_fault_is_repeated(
    outcome: Outcome, more_seconds: int, measured: MemoryLab
) -> None:
    """One that its cell's own settings ended does not; a time limit may be longer now."""
    lab = like(measured)
    ended, *_ = load_results(lab.bucket, EXECUTION)
    unmeasured = replace(ended, outcome=outcome, measured=None)
    lab.bucket.write_json(result_key(EXECUTION, ended.run.run_id), run_result_document(unmeasured))
    go_on(lab, document_of("grid", max_job_seconds=1800 + more_seconds))
    is_own = outcome in {*OWN_FAILURES, Outcome.OUTPACED}
    repeats = not is_own or (outcome is Outcome.TIMED_OUT and more_seconds > 0)
    again = [run.run_id for item in items_of_round(lab, 0, NEXT) for run in runs_of_item(item)]
    assert again == [ended.run.run_id] * repeats


def test_a_lost_long_run_runs_long_again() -> None:
    """Also where it was lost twice."""
    confirm = {"measurement": {"trials": 2, "jobs": "separate", "confirm": {"minutes": 1}}}
    lab = empty_lab()
    document = {**document_of("grid"), **confirm}
    take_in(lab, document)
    work_on(lab, EXECUTION, 5)
    results = load_results(lab.bucket, EXECUTION)
    (long,) = (result for result in results if result.run.confirming_steps)
    lost = replace(long, outcome=Outcome.COST_STOPPED, measured=None)
    again = replace(lost.run, run_id=f"{lost.run.cell.cell_id}-t4", trial=4)
    for written_result in (lost, replace(lost, run=again)):
        lab.bucket.write_json(
            result_key(EXECUTION, written_result.run.run_id), run_result_document(written_result)
        )
    go_on(lab, document)
    runs = [run for item in items_of_round(lab, 0, NEXT) for run in runs_of_item(item)]
    assert [(run.run_id, run.confirming_steps) for run in runs] == [
        (again.run_id, long.run.confirming_steps)
    ]


def test_plan_suite_dying_at_any_of_its_calls_takes_over_once() -> None:
    places = list[MemoryLab]()
    part = empty_lab()
    take_in(part, document_of("grid"))
    work_on(part, EXECUTION, 2)
    spent = part.spending.read(EXECUTION)

    def make(calls: Calls) -> Callable[[], None]:
        lab = like(part)
        calls.through_lab(lab)
        places.append(lab)
        return lambda: go_on(lab, document_of("grid"))

    for again in deaths(make):
        again()
        lab = places[-1]
        assert lab.spending.read(NEXT) == spent
        before = load_results(lab.bucket, EXECUTION)
        assert load_results(lab.bucket, NEXT) == before
        row = lab.executions.find(NEXT)
        assert row is not None
        assert (row.continues, row.run_count) == (EXECUTION, 2)


def test_spending_since_the_reading_is_not_lost() -> None:
    lab = empty_lab()
    take_in(lab, document_of("grid"))
    lab.expose(Decimal(3))
    row = replace(lab.plan(), execution_id=NEXT, continues=EXECUTION)
    assert not lab.spending.take_over(row, SpendingRow(exposed_usd=Decimal(2)))
    assert lab.executions.find(NEXT) is None
    assert lab.spending.take_over(row, SpendingRow(exposed_usd=Decimal(3)))


def test_plan_round_dying_at_any_of_its_calls_plans_the_same_long_runs() -> None:
    confirm = {"measurement": {"trials": 2, "jobs": "separate", "confirm": {"minutes": 1}}}
    places = list[MemoryLab]()
    measured = empty_lab()
    take_in(measured, {**document_of("grid"), **confirm})
    work_on(measured, EXECUTION, 4)
    expected = items_of_round(like(measured), 1)
    assert len(expected) == 2

    def make(calls: Calls) -> Callable[[], list[Any]]:
        lab = like(measured)
        calls.through_lab(lab)
        places.append(lab)
        return lambda: items_of_round(lab, 1)

    for again in deaths(make):
        assert again() == expected
        assert set(load_planned_runs(places[-1].bucket, EXECUTION)) >= {
            runs_of_item(item)[0].run_id for item in expected
        }
