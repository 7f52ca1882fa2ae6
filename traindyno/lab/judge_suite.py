"""Judge a suite from the results in S3, and write the verdict and the report beside them."""

from collections.abc import Mapping
from typing import Any

from traindyno.core.documents.stored import to_document
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.s3_keys import plan_key, report_data_key, report_html_key, suite_key, verdict_key
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.core.verdict.report_data import Report, report_document, shown_results
from traindyno.core.verdict.verdict import Verdict, judge, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.report.html import render
from traindyno.slices.report_parts import PROJECTED, REPORT_PARTS
from traindyno.store.executions import ExecutionRows, Judgement
from traindyno.store.results import load_planned_runs, load_preparations, load_results
from traindyno.store.results_bucket import ResultsBucket


def judge_suite(
    execution_id: str, *, bucket: ResultsBucket, executions: ExecutionRows, facts: Mapping[str, str], now: float
) -> Verdict:
    report = report_results(execution_id, bucket=bucket, facts=facts, now=now)
    bucket.write_json(verdict_key(execution_id), verdict_document(report.verdict))
    bucket.write_json(report_data_key(execution_id), report_document(report))
    bucket.write(report_html_key(execution_id), render(report).encode(), "text/html; charset=utf-8")
    verdict = report.verdict
    judgement = Judgement(
        finding=verdict.finding.value,
        headline=describe_verdict(verdict).headline,
        recommended=verdict.recommended,
        is_simulated=verdict.is_simulated,
        run_count=sum(sum(row.outcomes.values()) for row in verdict.rows),
    )
    executions.judge(execution_id, judgement)
    return verdict


def report_results(execution_id: str, *, bucket: ResultsBucket, facts: Mapping[str, str], now: float) -> Report:
    """The report of the results that are in the bucket. It changes nothing."""
    suite = bucket.read_as(suite_key(execution_id), read_stored_suite)
    plan = bucket.read_as(plan_key(execution_id), read_stored_plan)
    results = load_results(bucket, execution_id)
    verdict = judge(
        suite,
        plan.cells,
        results,
        host_priors=plan.host_priors,
        planned=load_planned_runs(bucket, execution_id),
    )
    record = ExecutionRecord(
        execution_id=execution_id,
        suite=suite,
        cells=plan.cells,
        results=tuple(results),
        host_priors=plan.host_priors,
    )
    return Report(
        execution_id=execution_id,
        created_at=now,
        suite=suite,
        cells=plan.cells,
        verdict=verdict,
        results=shown_results(plan.cells, results),
        facts=dict(facts),
        preparations=tuple(load_preparations(bucket, execution_id)),
        parts={
            **{name: to_document(find(record)) for name, find in REPORT_PARTS.items()},
            **{name: to_document(tuple(read(bucket, execution_id))) for name, read in PROJECTED.items()},
        },
    )


def verdict_event(execution_id: str, verdict: Verdict, bucket_name: str) -> dict[str, Any]:
    """The detail of the event on the bus."""
    return {
        "execution_id": execution_id,
        "suite": verdict.suite_name,
        "finding": verdict.finding.value,
        "recommended": verdict.recommended,
        "is_simulated": verdict.is_simulated,
        "report": f"s3://{bucket_name}/{report_html_key(execution_id)}",
    }
