"""PlanSuite: a suite is checked, priced and stored, or refused with every reason."""

from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, no_sleep
from tests.unit.planned_lab import (
    FixedQuotas,
    MemoryBuckets,
    empty_lab,
    items_of_round,
    measure,
    planned,
    take_in,
)
from tests.unit.suites import script_document, unprepared_document
from traindyno.aws.data_listing import DataListing
from traindyno.core.documents.stored import from_document
from traindyno.core.errors import SuiteInvalid, SuiteRefused
from traindyno.core.planning.plan import Plan
from traindyno.core.s3_keys import plan_key, suite_key
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.lab.check_quotas import check_quotas
from traindyno.lab.plan_suite import refusal_answer
from traindyno.lab.submit_run import submit_run


def test_an_accepted_suite_has_its_document_plan_and_row() -> None:
    lab = empty_lab()
    take_in(lab, unprepared_document())
    copy = f"code/{EXECUTION}/sourcedir.tar.gz"
    assert set(lab.objects.contents) == {suite_key(EXECUTION), plan_key(EXECUTION), copy}
    assert lab.objects.contents[copy] == str(SETTINGS.source_s3_uri).encode()
    row = lab.executions.find(EXECUTION)
    assert row is not None
    assert (row.run_count, row.job_count, row.started_at, row.latest_end) == (
        4,
        2,
        NOW,
        NOW + 4 * 3600,
    )
    assert row.source_s3_uri == f"s3://results/{copy}"
    assert (row.max_usd, row.prices["ml.g5.xlarge"].usd_per_hour) == (Decimal(50), Decimal("1.20"))


def test_a_name_that_step_functions_has_forgotten_is_no_name_for_another_execution() -> None:
    """Its rows and results would count as those of the new one, and its jobs' names are taken."""
    lab = empty_lab()
    take_in(lab, unprepared_document())
    take_in(lab, unprepared_document())
    lab.plan(started_at=NOW - 91 * 24 * 3600)
    before = dict(lab.objects.contents)
    with pytest.raises(SuiteRefused, match=f"an earlier execution {EXECUTION}: expected another"):
        take_in(lab, unprepared_document(limits={"max_usd": 7, "max_hours": 1}))
    assert lab.objects.contents == before


def test_an_uploaded_script_is_copied_for_the_execution_and_its_jobs_use_the_copy() -> None:
    lab = empty_lab()
    uploaded = "s3://results/code/0a1b/sourcedir.tar.gz"
    lab.objects.contents["code/0a1b/sourcedir.tar.gz"] = b"the script"
    document = script_document()
    document["workload"]["source"] = uploaded
    take_in(lab, document)
    copy = f"code/{EXECUTION}/script/sourcedir.tar.gz"
    assert lab.objects.contents[copy] == b"the script"
    (run, *_) = trial_runs(EXECUTION, parse_suite(document).cells, [1])
    submit_run(run, "token", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (request,) = lab.jobs.requests
    assert request["HyperParameters"]["sagemaker_submit_directory"] == f'"s3://results/{copy}"'


def test_a_script_in_its_owners_bucket_is_used_there() -> None:
    lab = empty_lab()
    take_in(lab, script_document())
    row = lab.executions.find(EXECUTION)
    assert row is not None
    assert row.script_s3_uri is None


@pytest.mark.parametrize(
    "source", ["./scripts", "/home/me/scripts", "scripts.tar.gz", "s3:/results/sourcedir.tar.gz"]
)
def test_an_unsent_script_is_refused_before_anything_is_written(source: str) -> None:
    lab = empty_lab()
    document = script_document()
    document["workload"]["source"] = source
    with pytest.raises(SuiteRefused) as caught:
        take_in(lab, document)
    assert f"workload.source: got {source}: expected the code in S3" in str(caught.value)
    assert "traindyno run" in str(caught.value)
    assert not lab.objects.contents
    assert not lab.table.items


def test_an_expired_upload_of_the_script_is_refused() -> None:
    lab = empty_lab()
    document = script_document()
    document["workload"]["source"] = "s3://results/code/0a1b/sourcedir.tar.gz"
    with pytest.raises(
        SuiteRefused, match=r"nothing is at s3://results/code/0a1b/sourcedir\.tar\.gz: expected"
    ):
        take_in(lab, document)
    assert not lab.table.items


def test_cells_have_the_labels_that_came_beside_the_suite() -> None:
    lab = empty_lab()
    first, *_ = parse_suite(unprepared_document()).cells
    take_in(lab, {**unprepared_document(), "cell_labels": {first.cell_id: "batch 8"}})
    plan = from_document(lab.bucket.read_json(plan_key(EXECUTION)), Plan)
    assert [cell.label for cell in plan.cells if cell.cell_id == first.cell_id] == ["batch 8"]


@pytest.mark.parametrize("labels", [5, "batch 8", ["batch 8"], {"a": 5}, None])
def test_labels_that_are_none_are_refused_by_name(labels: Any) -> None:
    lab = empty_lab()
    with pytest.raises(SuiteInvalid, match="cell_labels: expected labels by cell id"):
        take_in(lab, {**unprepared_document(), "cell_labels": labels})
    assert not lab.table.items


def test_a_wrong_document_is_refused_before_anything_is_written() -> None:
    lab = empty_lab()
    with pytest.raises(SuiteInvalid) as caught:
        take_in(lab, {**unprepared_document(), "matrix": {}, "bogus": 1})
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


def test_the_second_execution_of_the_same_work_expects_the_bill_of_the_first() -> None:
    lab = planned(4)
    for item in items_of_round(lab):
        measure(lab, item)
    assert from_document(lab.bucket.read_json(plan_key(EXECUTION)), Plan).expected.usd is None
    take_in(
        lab,
        unprepared_document(
            goal="fastest", limits={"max_usd": 20, "max_hours": 2, "max_job_seconds": 900}
        ),
    )
    check_quotas(EXECUTION, quotas=FixedQuotas(4), bucket=lab.bucket, now=NOW)
    plan = from_document(lab.bucket.read_json(plan_key(EXECUTION)), Plan)
    # two jobs of two runs, billed 350 s each, at $1.20/h
    assert plan.expected.usd is not None
    assert (round(plan.expected.usd, 6), plan.expected.past_runs) == (Decimal("0.233333"), 4)
    assert plan.expected.hours is not None


def test_other_work_has_no_expectation_from_this_history() -> None:
    lab = planned(4)
    measure(lab, items_of_round(lab)[0])
    take_in(lab, unprepared_document(purchase="spot"))
    assert from_document(lab.bucket.read_json(plan_key(EXECUTION)), Plan).expected.known_cells == 0


class HeavyBuckets(MemoryBuckets):
    """Each object has 20 GB."""

    def _row(self, uri: str, start: str) -> dict[str, Any]:
        return {**super()._row(uri, start), "Size": 20 * 10**9}


@pytest.mark.parametrize(
    ("instance", "volume_gb", "is_refused"),
    [("ml.m7i.xlarge", 30, True), ("ml.m7i.xlarge", 40, False), ("ml.g5.xlarge", 30, False)],
)
def test_a_model_larger_than_the_volume_is_refused(
    instance: str, volume_gb: int, is_refused: bool
) -> None:
    """g5 has instance storage in place of the volume."""
    document = unprepared_document(
        training={"instance": instance}, matrix={"batch_size_per_device": [1, 2]}, baseline={}
    )
    document["workload"]["model"] = {"path": "s3://models/large/"}
    document["job"] = {"volume_size_gb": volume_gb}
    listing = DataListing(
        HeavyBuckets({f"s3://models/large/{part}.safetensors": b"x" for part in "ab"})
    )
    try:
        take_in(empty_lab(), document, instance=instance, listing=listing)
    except SuiteRefused as refused:
        text = str(refused)
        assert is_refused == (
            "s3://models/large/ has 40.0 GB, and the volume of ml.m7i.xlarge 30 GB" in text
        )
    else:
        assert not is_refused
