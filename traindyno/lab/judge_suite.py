"""Judge a suite from the results in S3, and write the verdict and the report beside them."""

from collections.abc import Mapping, Sequence
from typing import Any

from traindyno.core.documents.stored import to_document
from traindyno.core.s3_keys import report_data_key, report_html_key, verdict_key
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.report_data import Report, report_document, shown_results
from traindyno.core.verdict.verdict import Verdict, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.lab.feature import Feature
from traindyno.report.html import render
from traindyno.store.executions import ExecutionRows, Judgement
from traindyno.store.results import load_planned_runs, load_preparations, read_record
from traindyno.store.results_bucket import ResultsBucket


def judge_suite(
    execution_id: str,
    *,
    bucket: ResultsBucket,
    executions: ExecutionRows,
    facts: Mapping[str, str],
    features: Sequence[Feature],
    now: float,
) -> Verdict:
    report = report_results(execution_id, bucket=bucket, facts=facts, features=features, now=now)
    bucket.write_json(verdict_key(execution_id), verdict_document(report.verdict))
    bucket.write_json(report_data_key(execution_id), report_document(report))
    page = render(report, features).encode()
    bucket.write(report_html_key(execution_id), page, "text/html; charset=utf-8")
    for feature in features:
        feature.keep(bucket, execution_id)
    executions.judge(execution_id, judgement_of(report))
    return report.verdict


def judgement_of(report: Report) -> Judgement:
    """What is told of an execution. One that continues another has that one's results too."""
    verdict = report.verdict
    execution_id = report.execution_id
    return Judgement(
        finding=verdict.finding.value,
        headline=describe_verdict(verdict).headline,
        recommended=verdict.recommended,
        is_simulated=verdict.is_simulated,
        run_count=sum(result.run.execution_id == execution_id for result in report.results),
    )


def report_results(
    execution_id: str,
    *,
    bucket: ResultsBucket,
    facts: Mapping[str, str],
    features: Sequence[Feature],
    now: float,
) -> Report:
    """The report of the results that are in the bucket. It changes nothing."""
    record = read_record(bucket, execution_id)
    verdict = judge(
        record.suite,
        record.cells,
        record.results,
        host_priors=record.host_priors,
        planned=load_planned_runs(bucket, execution_id),
    )
    return Report(
        execution_id=execution_id,
        created_at=now,
        suite=record.suite,
        cells=record.cells,
        verdict=verdict,
        results=shown_results(record.cells, record.results),
        facts=dict(facts),
        preparations=tuple(load_preparations(bucket, execution_id)),
        parts={
            feature.name: to_document(
                (*feature.judge(record), *feature.read_projected(bucket, execution_id))
            )
            for feature in features
        },
    )


def verdict_mail(verdict: Verdict, report_s3_uri: str) -> str:
    """The text that the lab's topic gets."""
    return f"{describe_verdict(verdict).headline}\n\nReport: {report_s3_uri}\n"


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
