"""Runs that may go to another instance type: asked for in order, read back, paid and filed by the type that it was."""

import random
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.core.planning.test_plan import LIMITS, price
from tests.unit.lab.shared_job_world import FAULT, JOB_ID, SHORTAGE, World
from tests.unit.lab.test_shared_jobs import live, record_all
from tests.unit.lab_in_memory import EXECUTION, NOW, PRICE, SETTINGS, MemoryLab, make_lab, no_sleep
from tests.unit.sagemaker.test_request import first_request, model_problems
from tests.unit.step_log_samples import log_lines
from tests.unit.suites import small_document, small_suite, unprepared_suite
from traindyno.core.costs.projection import paid_usd
from traindyno.core.errors import SuiteInvalid
from traindyno.core.measurement.run_result import RunResult, parse_run_result
from traindyno.core.planning.plan import Plan, plan_suite, stored_plan
from traindyno.core.planning.quotas import QuotaReading, needed_quotas
from traindyno.core.s3_keys import job_document_key, plan_key, report_data_key, result_key, step_log_prefix
from traindyno.core.suite.cells import cell_on, expand_cells
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.evidence import gather_evidence
from traindyno.core.verdict.next_round import next_race_trials
from traindyno.core.verdict.report_data import parse_report
from traindyno.lab.finish_run import finish_run
from traindyno.lab.judge_suite import judge_suite
from traindyno.lab.record_run import record_run
from traindyno.lab.submit_run import submit_run
from traindyno.sagemaker.request import build_training_job_request

OWN, OTHER = "ml.g5.xlarge", "ml.g6.xlarge"
PREFERENCES = {OWN: [OTHER]}
OTHER_USD = Decimal("2.40")  # twice the own type's


def with_preferences(**changes: Any) -> Suite:
    return small_suite(limits=LIMITS, instance_preferences=PREFERENCES, **changes)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"purchase": "spot"},
            "instance_preferences: SageMaker takes no preferences for spot instances, expected none with purchase spot",
        ),
        (
            {"warm_pool_seconds": 60},
            "instance_preferences: warm pools hold instances of one type, expected none with warm_pool_seconds",
        ),
        ({"instance_preferences": {OWN: []}}, f"instance_preferences.{OWN}: got 0 further types, expected 1 to 4"),
        ({"instance_preferences": {OWN: [OTHER, OWN]}}, "ml.g5.xlarge, expected each type once"),
        (
            {"instance_preferences": {OWN: ["ml.g5.13xlarge"]}},
            f'instance_preferences.{OWN}[0]: got "ml.g5.13xlarge": did you mean "ml.g5.16xlarge"',
        ),
        (
            {"instance_preferences": {OWN: ["local.cpu"]}},
            f"instance_preferences.{OWN}[0]: got local.cpu for {OWN}: instance_preferences applies to SageMaker types",
        ),
        (
            {"instance_preferences": {OWN: ["ml.g5.12xlarge"]}},
            f"instance_preferences.{OWN}[0]: ml.g5.12xlarge has 4 devices",
        ),
    ],
)
def test_type_that_cannot_be_a_fallback_is_refused_with_the_reason(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(SuiteInvalid) as caught:
        parse_suite(small_document(**{"instance_preferences": PREFERENCES, **changes}))
    assert says in str(caught.value)


def test_type_without_a_training_quota_is_no_fallback() -> None:
    with pytest.raises(SuiteInvalid, match=r"AWS offers no training quota for ml\.p3\.2xlarge any more"):
        parse_suite(small_document(instance_preferences={OWN: ["ml.p3.2xlarge"]}))


def test_request_names_the_types_in_order_and_one_count() -> None:
    """SageMaker's service model accepts it, with and without a training plan."""
    request = first_request(with_preferences())
    assert request["ResourceConfig"] == {
        "InstancePreferences": [{"InstanceType": OWN}, {"InstanceType": OTHER}],
        "InstanceCount": 1,
        "VolumeSizeInGB": SETTINGS.jobs.volume_size_gb,
    }
    assert model_problems(request) == []
    plan_arn = "arn:aws:sagemaker:us-east-1:123456789012:training-plan/plan-1"
    planned = first_request(with_preferences(training_plans={OTHER: plan_arn}))
    assert planned["ResourceConfig"]["InstancePreferences"][1]["TrainingPlanArns"] == [plan_arn]
    assert model_problems(planned) == []


def test_cell_of_a_type_without_fallbacks_asks_for_its_type_alone() -> None:
    suite = with_preferences(training={}, matrix={"instance": [OTHER, OWN]}, baseline={})
    cells = {cell.settings.instance: cell for cell in expand_cells(suite)}
    run = Run(run_id="r-t1", execution_id=EXECUTION, trial=1, cell=cells[OTHER])
    request = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)
    assert request["ResourceConfig"]["InstanceType"] == OTHER


def plan(suite: Suite, *, usd: tuple[str, ...] = ("1", "3"), **applied: int) -> Plan:
    quotas = {
        quota.name: QuotaReading(
            quota=quota,
            applied=next((value for word, value in applied.items() if word in quota.name), 500_000),
            default=0,
            in_use=0,
        )
        for quota in needed_quotas(suite, expand_cells(suite))
    }
    prices = {name: price(name, amount) for name, amount in zip((OWN, OTHER), usd, strict=False)}
    return plan_suite(suite, execution_id="e", prices=prices, quotas=quotas, histories={})


def test_a_plan_is_bounded_by_the_dearest_type_and_the_scarcest() -> None:
    lone_runs = {"trials": 2, "jobs": "separate"}
    planned = plan(unprepared_suite(limits=LIMITS, instance_preferences=PREFERENCES, measurement=lone_runs), g6=3)
    # 4 runs of 1800 s, and 480 s to stop and to upload, at $3/h; three attempts each; at most three at once
    assert (planned.one_attempt_usd, planned.worst_case_usd) == (Decimal("7.6"), Decimal("22.8"))
    assert planned.lanes[0].concurrency == 3
    (note,) = planned.notes
    assert note == f"runs on {OWN} may use {OTHER} if it has no capacity: cost bounds take the highest price, $3.00/h"
    assert planned.refusals == ()


def test_a_fallback_without_a_price_or_a_quota_is_refused() -> None:
    suite = unprepared_suite(limits=LIMITS, instance_preferences=PREFERENCES)
    reasons = [refusal.reason for refusal in plan(suite, usd=("1",), g6=0).refusals]
    assert reasons[0].startswith(f"the price of {OTHER} is unknown, so limits.max_usd can't be enforced: ")
    assert reasons[1].startswith(f'a run on 1 x {OTHER} needs 1 of quota "{OTHER} for training job usage"')


def lab_with_preferences() -> tuple[MemoryLab, list[Run]]:
    lab, runs = make_lab(instance_preferences=PREFERENCES)
    prices = {OWN: PRICE, OTHER: replace(PRICE, instance_type=OTHER, usd_per_hour=OTHER_USD)}
    lab.plan(prices=prices)
    return lab, runs


def start(lab: MemoryLab, run: Run) -> str:
    submit_run(run, "token", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    return list(lab.jobs.jobs)[-1]


def end(lab: MemoryLab, run: Run, name: str, selected: str | None, status: str = "Completed", **more: Any) -> None:
    """300 seconds are billed; half a second a step."""
    if selected:
        lab.jobs.jobs[name]["ResourceConfig"] = {
            **lab.jobs.jobs[name]["ResourceConfig"],
            "SelectedInstanceType": selected,
            "SelectedInstanceCount": 1,
        }
    lab.jobs.end(name, status, **more)
    key = f"{step_log_prefix(EXECUTION, run.run_id, name)}rank-00000.1790000000000.jsonl"
    lab.objects.contents[key] = "".join(log_lines(step_seconds=[0.5] * 40)).encode()
    finish_run(name, lab="traindyno", services=lab.services, now=NOW + 500)


def result_of(lab: MemoryLab, run: Run) -> RunResult:
    record_run(run, final=None, services=lab.services)
    return parse_run_result(lab.bucket.read_json(result_key(EXECUTION, run.run_id)))


def test_a_run_is_paid_and_filed_by_the_type_that_it_ran_on() -> None:
    lab, (run, *_) = lab_with_preferences()
    name = start(lab, run)
    # 1800 s, and 480 s to stop and to upload, at the dearest
    assert lab.money.exposed_usd == Decimal("1.52")
    end(lab, run, name, OTHER)
    assert lab.money.spent_usd == lab.money.exposed_usd == Decimal("0.20")
    result = result_of(lab, run)
    suite = parse_suite(small_document(instance_preferences=PREFERENCES))
    assert result.run.cell == cell_on(expand_cells(suite), run.cell, OTHER)
    assert result.run.cell.cell_id != run.cell.cell_id
    assert OTHER in result.run.cell.label
    assert (result.price.usd_per_instance_hour, paid_usd(result)) == (OTHER_USD, Decimal("0.20"))
    row = lab.summary(run.run_id)
    assert (row.instance, row.cell_id) == (OTHER, result.run.cell.cell_id)


def test_a_run_on_its_own_type_is_paid_at_its_own_price() -> None:
    lab, (run, *_) = lab_with_preferences()
    end(lab, run, start(lab, run), OWN)
    assert lab.money.spent_usd == Decimal("0.10")
    assert result_of(lab, run).run.cell == run.cell


def test_types_are_rows_of_their_own_and_never_averaged() -> None:
    lab, runs = lab_with_preferences()
    suite = parse_suite(small_document(instance_preferences=PREFERENCES))
    lab.bucket.write_json(plan_key(EXECUTION), stored_plan(plan(suite)))
    for run in runs:
        end(lab, run, start(lab, run), OTHER if run.trial == 2 else OWN)
        result_of(lab, run)
    verdict = judge_suite(EXECUTION, bucket=lab.bucket, executions=lab.executions, facts={}, now=NOW)
    assert Counter((row.instance, row.trials) for row in verdict.rows) == {(OWN, 1): 2, (OTHER, 1): 2}
    report = parse_report(lab.bucket.read_json(report_data_key(EXECUTION)))
    assert {cell.settings.instance for cell in report.cells} == {OWN, OTHER}


def test_a_fallback_that_is_planned_as_well_is_that_cell() -> None:
    suite = with_preferences(training={}, matrix={"instance": [OWN, OTHER]}, baseline={})
    own, other = expand_cells(suite)
    assert cell_on(expand_cells(suite), own, OTHER) == other


def test_next_attempt_keeps_the_fallback_type_on_which_the_run_began() -> None:
    lab, (run, *_) = lab_with_preferences()
    end(lab, run, start(lab, run), OTHER, "Failed", reason="InternalServerError: We encountered an internal error.")
    again = start(lab, run)
    resources = lab.jobs.requests[-1]["ResourceConfig"]
    assert (resources["InstanceType"], "InstancePreferences" in resources) == (OTHER, False)
    assert again.endswith("-a2")
    assert run.cell.cell_id in again
    end(lab, run, again, None)
    result = result_of(lab, run)
    # two attempts of 300 s at $2.40/h
    assert (result.run.cell.settings.instance, paid_usd(result)) == (OTHER, Decimal("0.40"))
    assert lab.money.spent_usd == Decimal("0.40")


def test_next_attempt_keeps_the_first_type_if_the_run_began_on_it() -> None:
    lab, (run, *_) = lab_with_preferences()
    end(lab, run, start(lab, run), OWN, "Failed", reason="InternalServerError: We encountered an internal error.")
    start(lab, run)
    resources = lab.jobs.requests[-1]["ResourceConfig"]
    assert (resources["InstanceType"], "InstancePreferences" in resources) == (OWN, False)
    # what was billed at its own price, and 2280 s at it
    assert lab.money.exposed_usd == Decimal("0.10") + Decimal("0.76")


def test_an_attempt_that_got_no_capacity_leaves_the_choice_open() -> None:
    lab, (run, *_) = lab_with_preferences()
    shortage = "CapacityError: Unable to provision requested ML compute capacity."
    end(lab, run, start(lab, run), None, "Failed", reason=shortage, billable_seconds=None)
    start(lab, run)
    assert len(lab.jobs.requests[-1]["ResourceConfig"]["InstancePreferences"]) == 2


def test_a_shared_job_moves_to_the_next_type_as_a_whole() -> None:
    """It gets no capacity, then the fallback; its host dies after the first run, and the last two run there too."""
    world = World(random.Random(0), failing=0.0, changes={"instance_preferences": PREFERENCES})
    world.lab.plan(prices={OWN: PRICE, OTHER: replace(PRICE, instance_type=OTHER, usd_per_hour=OTHER_USD)})
    world.start("t1")
    live(world, 0, "Failed", reason=SHORTAGE, billable_seconds=None)
    world.start("t2")
    asked = world.lab.jobs.requests[-1]["ResourceConfig"]["InstancePreferences"]
    assert [each["InstanceType"] for each in asked] == [OWN, OTHER]
    name = list(world.lab.jobs.jobs)[-1]
    world.lab.jobs.jobs[name]["ResourceConfig"] = {
        **world.lab.jobs.jobs[name]["ResourceConfig"],
        "SelectedInstanceType": OTHER,
        "SelectedInstanceCount": 1,
    }
    live(world, 1, "Failed", reason=FAULT)
    world.start("t3")
    resources = world.lab.jobs.requests[-1]["ResourceConfig"]
    assert (resources["InstanceType"], "InstancePreferences" in resources) == (OTHER, False)
    assert world.lab.bucket.read_json(job_document_key(EXECUTION, JOB_ID))["instance_type"] == OTHER
    live(world, 2)
    results = record_all(world)
    suite = parse_suite(small_document(instance_preferences=PREFERENCES))
    planned = {run.run_id: run.cell for run in world.job.runs}
    assert {run_id: result.run.cell for run_id, result in results.items()} == {
        run_id: cell_on(expand_cells(suite), cell, OTHER) for run_id, cell in planned.items()
    }
    assert all(OTHER in result.run.cell.label for result in results.values())
    assert {result.price.usd_per_instance_hour for result in results.values()} == {OTHER_USD}
    # two attempts of 300 s at $2.40/h
    assert sum(paid_usd(result) or 0 for result in results.values()) == pytest.approx(Decimal("0.40"))
    assert world.lab.money.spent_usd == Decimal("0.40")
    assert {world.lab.summary(run_id).instance for run_id in results} == {OTHER}


def test_a_search_does_not_repeat_trials_that_ran_elsewhere() -> None:
    lab, runs = lab_with_preferences()
    suite = parse_suite(small_document(instance_preferences=PREFERENCES, search="race", measurement={"trials": 3}))
    for run in runs:
        end(lab, run, start(lab, run), OTHER if run == runs[-1] else OWN)
    results = [result_of(lab, run) for run in runs if run.trial == 1]
    following = next_race_trials(suite, gather_evidence(suite, expand_cells(suite), results), results)
    assert {(cell.cell_id, trial) for cell, trial in following} == {(run.cell.cell_id, 2) for run in runs}


def test_quotas_of_every_type_are_needed() -> None:
    suite = with_preferences()
    names = [quota.name for quota in needed_quotas(suite, expand_cells(suite))]
    assert names[:2] == [f"{OWN} for training job usage", f"{OTHER} for training job usage"]
    assert suite.purchase is Purchase.ON_DEMAND
