"""JudgeSuite: from results to a verdict, its claims and a report."""

import json
from collections import Counter
from contextlib import nullcontext
from decimal import Decimal
from math import sqrt
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.core.suite.test_suite_file import CLAIMS
from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, no_sleep
from tests.unit.planned_lab import (
    FixedQuotas,
    items_of_round,
    judge_execution,
    measure,
    planned,
    runs_of_item,
    take_in,
)
from tests.unit.run_samples import known
from tests.unit.suites import unprepared_document
from traindyno.core.jobs.job import owner_id, parse_owner
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.s3_keys import (
    plan_key,
    report_data_key,
    report_html_key,
    result_key,
    verdict_key,
)
from traindyno.core.verdict.report_data import parse_report
from traindyno.figures.hosts import HostClass
from traindyno.lab.check_quotas import check_quotas
from traindyno.lab.judge_suite import verdict_event, verdict_mail
from traindyno.lab.plan_round import plan_next_round
from traindyno.lab.record_run import record_runs, refused_outcome
from traindyno.lab.submit_run import submit_run
from traindyno.slices.claims.lab import PART as CLAIMS_PART
from traindyno.slices.claims.lab import ClaimFinding, ClaimJudgement
from traindyno.slices.pricing.lab import PART, PricedOption
from traindyno.store.results import load_results


def test_a_suite_goes_from_its_document_to_a_verdict_and_a_report() -> None:
    lab = planned(4)
    for item in items_of_round(lab):
        measure(lab, item)
    verdict = judge_execution(lab)
    assert {verdict_key(EXECUTION), report_html_key(EXECUTION)} <= set(lab.objects.contents)
    row = known(lab.executions.find(EXECUTION))
    assert row.judgement is not None
    assert row.judgement.finding == verdict.finding
    assert row.judgement.run_count == row.run_count == 4
    event = verdict_event(EXECUTION, verdict, "results")
    assert event["report"] == f"s3://results/{report_html_key(EXECUTION)}"
    mail = verdict_mail(verdict, event["report"])
    assert mail == f"{row.judgement.headline}\n\nReport: {event['report']}\n"
    assert lab.money.spent_usd == 2 * Decimal("0.116667")  # 350 s for the job of each trial


@pytest.mark.parametrize("jobs", ["separate", "shared"])
def test_an_unrecordable_run_is_named_by_the_verdict_and_its_report(
    jobs: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state machine tolerates that RecordRun fails, and goes on to JudgeSuite."""
    lab = planned(4, measurement={"trials": 2, "jobs": jobs})
    items = items_of_round(lab)
    write = lab.objects.write
    runs = [run for item in items for run in runs_of_item(item)]
    run_id = runs[0].run_id
    count = f"1 of {len(runs)} runs has no result"

    def refusing(key: str, *rest: Any) -> None:
        if key == result_key(EXECUTION, run_id):
            raise PermissionError(key)
        write(key, *rest)

    monkeypatch.setattr(lab.objects, "write", refusing)
    for number, item in enumerate(items):
        with nullcontext() if number else pytest.raises(PermissionError):
            measure(lab, item)
    verdict = judge_execution(lab)
    assert (verdict.missing.planned, verdict.missing.run_ids) == (len(runs), (run_id,))
    row = known(lab.executions.find(EXECUTION))
    assert row.judgement is not None
    assert row.judgement.headline.endswith(f" {count}.")
    assert (
        f"{count}: {run_id}. The verdict does not count"
        in lab.bucket.read(report_html_key(EXECUTION)).decode()
    )
    monkeypatch.setattr(lab.objects, "write", write)
    record_runs(parse_owner(items[0]), final=None, services=lab.services)
    verdict = judge_execution(lab)
    assert verdict.missing.run_ids == ()
    assert "no result" not in lab.bucket.read(report_html_key(EXECUTION)).decode()


def test_hosts_of_earlier_executions_update_the_prior_of_the_verdict(
    snapshot: Snapshot,
) -> None:
    """Host b takes 10 % longer than host a in both cells of the first execution, and each runs
    twice.
    """
    lab = planned(8, measurement={"trials": 4})
    for item in items_of_round(lab):
        host_id = "ab"[runs_of_item(item)[0].trial % 2]
        measure(lab, item, host_id=host_id, step_seconds=0.5 if host_id == "a" else 0.55)
    later = f"{EXECUTION}-later"
    take_in(lab, unprepared_document(), execution_id=later)
    check_quotas(later, quotas=FixedQuotas(8), bucket=lab.bucket, now=NOW)
    priors = known(read_stored_plan(lab.bucket.read_json(plan_key(later))).host_priors)
    prior = priors[HostClass.ONE_HOST]
    # 0.02^2 with 3 degrees, and ln(1.1)^2 / 2 = 0.00454 with 1 of each cell
    assert prior.deviation == pytest.approx(sqrt((3 * 0.0004 + 2 * 0.00454) / 5), rel=1e-2)
    lab.bucket.write_json(plan_key(EXECUTION), lab.bucket.read_json(plan_key(later)))
    verdict = judge_execution(lab)
    assert verdict.best is not None
    assert verdict.best.hosts.spread == prior
    snapshot(prior.source)


def test_the_suites_further_prices_reach_the_report() -> None:
    lab = planned(
        4, pricing={"spot": {"ml.g5.xlarge": {"discount": 0.5, "interruptions_per_hour": 0}}}
    )
    for item in items_of_round(lab):
        measure(lab, item)
    verdict = judge_execution(lab)
    report = parse_report(lab.bucket.read_json(report_data_key(EXECUTION)))
    demand, spot = report.part(PART, PricedOption)
    assert [demand.name.split(",")[0], spot.name.split(",")[0]] == ["on demand", "spot"]
    best = verdict.recommended or ""
    assert spot.usd[best] == pytest.approx(demand.usd[best] / 2, rel=1e-4)
    page = lab.bucket.read(report_html_key(EXECUTION)).decode()
    assert "At other prices" in page


def test_the_claims_of_a_suite_are_judged_in_its_report() -> None:
    lab = planned(4, claims=CLAIMS)
    for item in items_of_round(lab):
        measure(lab, item)
    judge_execution(lab)
    report = parse_report(lab.bucket.read_json(report_data_key(EXECUTION)))
    (judged,) = report.part(CLAIMS_PART, ClaimJudgement)
    # every step took half a second in both cells: no gain of 20 %
    assert (judged.claim.claim_id, judged.finding) == ("gain", ClaimFinding.NOT_REPRODUCED)
    assert "inductor is 20 % faster" in lab.bucket.read(report_html_key(EXECUTION)).decode()


@pytest.mark.parametrize("search", ["grid", "race"])
@pytest.mark.parametrize("limit", ["max_usd", "max_hours"])
def test_the_end_of_a_limit_gives_the_verdict_and_the_report_of_the_measurements(
    limit: str, search: str
) -> None:
    """$0.92 is held back for a job, and $0.10 paid for each of two; the other runs are submitted
    after four hours.
    """
    limits = {"max_usd": 1.1 if limit == "max_usd" else 50, "max_hours": 4, "max_job_seconds": 1800}
    lab = planned(4, search=search, limits=limits, measurement={"trials": 2, "jobs": "separate"})
    late = NOW + (4 * 3600 if limit == "max_hours" else 0)
    finished = 0
    while lanes := plan_next_round(EXECUTION, finished_rounds=finished, bucket=lab.bucket)["lanes"]:
        finished += 1
        for item in lab.bucket.read_json(lanes[0]["packs"][0]["items_key"]):
            owner = parse_owner(item)
            if len(lab.run_rows) < 2:
                measure(lab, item)
                continue
            submit_run(
                owner,
                owner_id(owner),
                services=lab.services,
                settings=SETTINGS,
                now=late,
                sleep=no_sleep,
            )
            end = json.loads(lab.answers.given[-1][2])
            record_runs(owner, final=refused_outcome(end), services=lab.services)
    verdict = judge_execution(lab, now=late)
    assert Counter(result.outcome for result in load_results(lab.bucket, EXECUTION)) == {
        Outcome.COMPLETED: 2,
        Outcome.COST_STOPPED: 2,
    }
    assert verdict.recommended is not None
    assert [row.failed for row in verdict.rows] == [0] * len(verdict.rows), (
        "a run that never began is no failure"
    )
    page = lab.bucket.read(report_html_key(EXECUTION)).decode()
    assert all(f"{row.label}" in page for row in verdict.rows)
    assert f"limits.{limit}" in page
