"""The first suite of a lab passes through the use cases of all states, from its file to the report, within its cap."""

from decimal import Decimal
from typing import Any

import pytest
import yaml

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, no_sleep
from tests.unit.planned_lab import FixedQuotas, MemoryBuckets, empty_lab, measure, runs_of_item, take_in
from traindyno.aws.data_listing import DataListing
from traindyno.bundle import REPO_ROOT
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.planning.preparation_plan import due_preparations
from traindyno.core.s3_keys import plan_key, report_html_key, tokens_folder
from traindyno.core.suite.preparation import TOKENS_MANIFEST, tokens_manifest
from traindyno.lab.check_quotas import check_quotas
from traindyno.lab.finish_run import finish_run
from traindyno.lab.judge_suite import judge_suite, verdict_event
from traindyno.lab.plan_round import plan_next_round
from traindyno.lab.submit_run import submit_run
from traindyno.store.results import load_results

DATA = "s3://results/data/sample/"


def smoke_suite() -> dict[str, Any]:
    """The suite that the command line sends, with the sample uploaded."""
    document: dict[str, Any] = yaml.safe_load((REPO_ROOT / "suites/smoke_aws.yaml").read_text(encoding="utf-8"))
    document["workload"]["dataset"]["path"] = DATA
    return document


def prepare(lab: MemoryLab) -> None:
    plan = read_stored_plan(lab.bucket.read_json(plan_key(EXECUTION)))
    (due,) = due_preparations(plan.preparation, EXECUTION)
    submit_run(due, "preparing", services=lab.services, settings=SETTINGS, now=NOW, sleep=no_sleep)
    (job,) = lab.jobs.jobs
    manifest = tokens_manifest(due.key, {"train": {"sequences": 1000, "tokens": 64_000}})
    lab.bucket.write_json(f"{tokens_folder(due.key, job)}{TOKENS_MANIFEST}", manifest)
    lab.jobs.end(job, "Completed")
    finish_run(job, services=lab.services, now=NOW + 500)


def test_smoke_suite_goes_from_preparation_to_report_for_less_than_its_cap() -> None:
    lab, listing = empty_lab(), DataListing(MemoryBuckets({f"{DATA}python.txt": b"import this"}))
    take_in(lab, smoke_suite(), usd="0.115", instance="ml.m5.large", listing=listing)
    check_quotas(EXECUTION, quotas=FixedQuotas(4), bucket=lab.bucket, now=NOW)
    prepare(lab)
    (lane,) = plan_next_round(EXECUTION, finished_rounds=0, bucket=lab.bucket)["lanes"]
    items = [item for wave in lane["packs"] for item in lab.bucket.read_json(wave["items_key"])]
    for item in items:
        uris = [str(run.tokens and run.tokens.s3_uri) for run in runs_of_item(item)]
        assert all(uri.startswith("s3://results/prepared/") for uri in uris)
        measure(lab, item)
    # Time and disk for an image of several gigabytes
    assert [request["StoppingCondition"]["MaxRuntimeInSeconds"] for request in lab.jobs.requests] == [1320] * 2
    assert [request["ResourceConfig"]["VolumeSizeInGB"] for request in lab.jobs.requests[1:]] == [100]
    assert plan_next_round(EXECUTION, finished_rounds=1, bucket=lab.bucket)["lanes"] == []
    verdict = judge_suite(EXECUTION, bucket=lab.bucket, executions=lab.executions, facts={}, now=NOW)
    results = load_results(lab.bucket, EXECUTION)
    assert [result.outcome.value for result in results] == ["completed"] * 2
    assert {result.price.usd_per_instance_hour for result in results} == {Decimal("0.115")}
    # the preparation of 300 s and the job of both runs of 350 s, at 0.115 USD an hour
    assert lab.money.spent_usd == pytest.approx(Decimal("0.02076"), abs=Decimal("0.00001"))
    assert lab.money.exposed_usd == lab.money.spent_usd < Decimal("0.30")
    assert verdict_event(EXECUTION, verdict, "results")["report"] == f"s3://results/{report_html_key(EXECUTION)}"
    assert b"smoke-aws" in lab.objects.contents[report_html_key(EXECUTION)]
