"""PlanSuite, CheckQuotas, PlanRound and JudgeSuite: from a document to lanes, and from results to a verdict."""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.core.suite.test_suite_file import CLAIMS
from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, no_sleep
from tests.unit.step_log_samples import log_lines
from tests.unit.stubbed import stubbed
from tests.unit.suites import unprepared_document
from traindyno.aws.data_listing import DataListing
from traindyno.aws.quotas import Quotas
from traindyno.core.documents.stored import from_document
from traindyno.core.errors import SuiteInvalid, SuiteRefused
from traindyno.core.planning.plan import Plan
from traindyno.core.planning.quotas import Quota, QuotaReading
from traindyno.core.s3_keys import plan_key, report_data_key, report_html_key, step_log_prefix, suite_key, verdict_key
from traindyno.core.suite.runs import parse_run
from traindyno.core.verdict.claims import ClaimFinding
from traindyno.core.verdict.report_data import parse_report
from traindyno.lab.check_quotas import check_quotas
from traindyno.lab.finish_run import finish_run
from traindyno.lab.judge_suite import judge_suite, verdict_event
from traindyno.lab.plan_round import plan_next_round
from traindyno.lab.plan_suite import refusal_answer, take_in_suite
from traindyno.lab.record_run import record_run
from traindyno.lab.submit_run import submit_run


class FixedQuotas(Quotas):
    def __init__(self, applied: int) -> None:
        self._value = applied

    def read(self, quotas: Iterable[Quota], *, now: float) -> dict[str, QuotaReading]:
        seconds = 432_000
        return {
            quota.name: QuotaReading(
                quota=quota, applied=seconds if "run time" in quota.name else self._value, default=None, in_use=0
            )
            for quota in quotas
        }


class NoListing(DataListing):
    """Synthetic data lies nowhere."""

    def __init__(self) -> None:
        pass


def take_in(lab: MemoryLab, document: Any, *, usd: str | None = "1.20") -> None:
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": usd}}
    product = {
        "product": {"attributes": {"usagetype": "USE1-Train:ml.g5.xlarge"}},
        "terms": {"OnDemand": {"a": {"priceDimensions": {"b": dimension}}}},
    }
    with stubbed("pricing") as (client, stubber):
        stubber.add_response("get_products", {"PriceList": [json.dumps(product)] if usd else []})
        take_in_suite(
            document,
            execution_id=EXECUTION,
            services=lab.services,
            settings=SETTINGS,
            pricing=client,
            listing=NoListing(),
            now=NOW,
        )


def empty_lab() -> MemoryLab:
    lab = MemoryLab()
    lab.table.items.clear()
    return lab


def test_a_suite_that_is_taken_in_has_its_document_plan_and_row() -> None:
    lab = empty_lab()
    take_in(lab, unprepared_document())
    assert set(lab.objects.contents) == {suite_key(EXECUTION), plan_key(EXECUTION)}
    row = lab.executions.find(EXECUTION)
    assert row is not None
    assert (row.run_count, row.started_at, row.latest_end) == (4, NOW, NOW + 4 * 3600)
    assert (row.max_usd, row.prices["ml.g5.xlarge"].usd_per_hour) == (Decimal(50), Decimal("1.20"))


def test_a_wrong_document_is_refused_before_anything_is_asked_or_written() -> None:
    lab = empty_lab()
    with pytest.raises(SuiteInvalid) as caught, stubbed("pricing") as (client, _):
        take_in_suite(
            {**unprepared_document(), "matrix": {}, "bogus": 1},
            execution_id=EXECUTION,
            services=lab.services,
            settings=SETTINGS,
            pricing=client,
            listing=NoListing(),
            now=NOW,
        )
    assert "bogus" in str(caught.value)
    assert not lab.objects.contents
    assert not lab.table.items


def test_a_suite_without_a_price_or_over_its_cap_is_refused_with_every_reason() -> None:
    with pytest.raises(SuiteRefused, match=r"price of ml\.g5\.xlarge is unknown"):
        take_in(empty_lab(), unprepared_document(), usd=None)
    limits = {"max_usd": "0.10", "max_hours": "0.25", "max_job_seconds": 1800}
    with pytest.raises(SuiteRefused) as caught:
        take_in(empty_lab(), unprepared_document(limits=limits))
    assert len(caught.value.reasons) == 2


def test_a_refusal_reaches_the_state_machine_with_its_class_and_its_text_in_full() -> None:
    answer = refusal_answer(SuiteRefused(["too dear", "too long"]))
    assert answer == {"refused": {"error": "SuiteRefused", "cause": "too dear\ntoo long"}}
    assert len(refusal_answer(SuiteRefused(["x" * 50_000]))["refused"]["cause"]) < 32_768


def planned(applied: int, **changes: Any) -> MemoryLab:
    lab = empty_lab()
    take_in(lab, unprepared_document(**changes))
    check_quotas(EXECUTION, quotas=FixedQuotas(applied), bucket=lab.bucket, now=NOW)
    return lab


def test_a_quota_that_is_too_small_is_refused_with_the_request_that_raises_it() -> None:
    with pytest.raises(SuiteRefused) as caught:
        planned(0)
    text = str(caught.value)
    assert "needs 1 of quota" in text
    assert "aws service-quotas request-service-quota-increase --service-code sagemaker --quota-code L-" in text


def test_a_lane_gets_the_concurrency_that_the_quota_allows() -> None:
    lab = planned(3)
    answer = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)
    (lane,) = answer["lanes"]
    assert (answer["execution_id"], answer["round"], lane["concurrency"]) == (EXECUTION, 1, 3)
    assert answer["lanes_at_once"] == 1


def test_the_items_of_a_lane_are_runs_in_order_with_the_longest_that_each_may_take() -> None:
    lab = planned(1)
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    items = lab.bucket.read_json(lane["items_key"])
    assert [parse_run(item["run"]).trial for item in items] == [1, 1, 2, 2]
    # 7,200 s of waiting, 1,800 s of work, an hour of grace
    assert {item["timeout_seconds"] for item in items} == {7200 + 1800 + 3600}


def test_a_grid_is_measured_in_one_round() -> None:
    lab = planned(1)
    assert plan_next_round(EXECUTION, finished_rounds=1, bucket=lab.bucket)["lanes"] == []


def test_what_is_carried_between_rounds_stays_small() -> None:
    lab = planned(1, measurement={"trials": 20})
    answer = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)
    assert len(json.dumps(answer)) < 500


def measure(lab: MemoryLab, item: dict[str, Any]) -> None:
    run = parse_run(item["run"])
    submit_run(run, run.run_id, services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    name = list(lab.jobs.jobs)[-1]
    lab.jobs.end(name, "Completed")
    lines = log_lines(step_seconds=[0.5] * 40)
    key = f"{step_log_prefix(EXECUTION, run.run_id, name)}rank-00000.1790000000000.jsonl"
    lab.objects.contents[key] = "".join(lines).encode()
    finish_run(name, lab="traindyno", services=lab.services, now=NOW + 500)
    record_run(run, final=None, services=lab.services)


def test_a_suite_goes_from_its_document_to_a_verdict_and_a_report() -> None:
    lab = planned(4)
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    for item in lab.bucket.read_json(lane["items_key"]):
        measure(lab, item)
    verdict = judge_suite(EXECUTION, bucket=lab.bucket, executions=lab.executions, facts={"lab": "traindyno"}, now=NOW)
    assert {verdict_key(EXECUTION), report_html_key(EXECUTION)} <= set(lab.objects.contents)
    row = lab.executions.find(EXECUTION)
    assert row is not None
    assert row.judgement is not None
    assert row.judgement.finding == verdict.finding
    event = verdict_event(EXECUTION, verdict, "results")
    assert event["report"] == f"s3://results/{report_html_key(EXECUTION)}"
    assert lab.money.spent_usd == 4 * Decimal("0.10")


def test_the_second_execution_of_the_same_work_expects_what_the_first_was_billed() -> None:
    lab = planned(4)
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    for item in lab.bucket.read_json(lane["items_key"]):
        measure(lab, item)
    assert from_document(lab.bucket.read_json(plan_key(EXECUTION)), Plan).expected.usd is None
    take_in(lab, unprepared_document(goal="fastest", limits={"max_usd": 20, "max_hours": 2, "max_job_seconds": 900}))
    check_quotas(EXECUTION, quotas=FixedQuotas(4), bucket=lab.bucket, now=NOW)
    plan = from_document(lab.bucket.read_json(plan_key(EXECUTION)), Plan)
    # four runs billed 300 s each, at $1.20/h
    assert (plan.expected.usd, plan.expected.past_runs) == (Decimal("0.4"), 4)
    assert plan.expected.hours is not None


def test_other_work_expects_nothing_of_it() -> None:
    lab = planned(4)
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    measure(lab, lab.bucket.read_json(lane["items_key"])[0])
    take_in(lab, unprepared_document(purchase="spot"))
    assert from_document(lab.bucket.read_json(plan_key(EXECUTION)), Plan).expected.known_cells == 0


def test_the_claims_of_a_suite_are_judged_in_its_report() -> None:
    lab = planned(4, claims=CLAIMS)
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    for item in lab.bucket.read_json(lane["items_key"]):
        measure(lab, item)
    judge_suite(EXECUTION, bucket=lab.bucket, executions=lab.executions, facts={}, now=NOW)
    (judged,) = parse_report(lab.bucket.read_json(report_data_key(EXECUTION))).claims
    # every step took half a second in both cells: no gain of 20 %
    assert (judged.claim.claim_id, judged.finding) == ("gain", ClaimFinding.NOT_REPRODUCED)
    assert "inductor is 20 % faster" in lab.bucket.read(report_html_key(EXECUTION)).decode()
