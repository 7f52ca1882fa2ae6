"""The request of the recommended cell."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from tests.unit.report.test_report import report_of
from tests.unit.run_samples import completed_result
from tests.unit.suites import script_document
from traindyno import SdkJobRefused
from traindyno.api.executions import winning_request
from traindyno.api.lab_target import LabTarget
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.sagemaker.job_settings import JobSettings, LabJobs
from traindyno.sagemaker.request import build_training_job_request


def test_the_winning_request_is_for_the_cell_in_a_job_of_its_own() -> None:
    suite = parse_suite(script_document())
    results = [
        completed_result(cell, trial, step_seconds=1 + index + trial / 100, suite=suite)
        for index, cell in enumerate(suite.cells)
        for trial in (1, 2, 3)
    ]
    report = report_of(results, suite)
    row = SimpleNamespace(script_s3_uri=None, source_s3_uri="s3://results/source.tar.gz", images={})
    serving = SimpleNamespace(region="us-east-1", jobs=LabJobs())
    target = SimpleNamespace(
        services=SimpleNamespace(executions=SimpleNamespace(find=lambda _: row)),
        deployment=SimpleNamespace(
            serving=serving, training_role_arn="arn:role", bucket="results", lab="traindyno"
        ),
    )
    request = winning_request(cast("LabTarget", target), report)
    settings = JobSettings(
        region="us-east-1",
        role_arn="arn:role",
        results_bucket="results",
        source_s3_uri="s3://results/source.tar.gz",
    )
    best = next(
        result.run for result in results if result.run.cell.cell_id == report.verdict.recommended
    )
    assert request == build_training_job_request(best, suite, attempt=1, settings=settings)
    nothing = replace(report, verdict=replace(report.verdict, recommended=None))
    with pytest.raises(SdkJobRefused, match="recommends no cell: expected a verdict with a cell"):
        winning_request(cast("LabTarget", target), nothing)
