"""The suites that come with the project: each can be read and planned, and asks for jobs that SageMaker knows."""

from decimal import Decimal
from pathlib import Path

import pytest

from tests.unit.sagemaker.test_request import SETTINGS, model_problems
from traindyno.cli.suite_loading import load_suite
from traindyno.core.costs.prices import Price
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.planning.quotas import QuotaReading, needed_quotas
from traindyno.core.suite.cells import baseline_cell, expand_cells
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import parse_suite, suite_document
from traindyno.sagemaker.request import build_training_job_request

SUITES = Path(__file__).parents[4] / "suites"
AT_HOME = sorted(SUITES.glob("*.yaml"))
ON_AWS = sorted((SUITES / "modern").glob("*.yaml"))
# USD an hour in us-east-1, November 2026, but for trn1: as published in 2023; the last is an estimate, for the data.
PRICES = {
    "ml.g4dn.12xlarge": "4.89",
    "ml.p4d.24xlarge": "25.251286",
    "ml.trn1.32xlarge": "24.725",
    "ml.m7i.xlarge": "0.242",
}
ENOUGH = 64


def plan(suite: Suite) -> Plan:
    prices = {
        name: Price(
            instance_type=name, region="us-east-1", usd_per_hour=Decimal(usd), as_of="2026-11-21", source="published"
        )
        for name, usd in PRICES.items()
    }
    quotas = {
        quota.name: QuotaReading(quota=quota, applied=max(ENOUGH, quota.default or 0), default=quota.default, in_use=0)
        for quota in needed_quotas(suite, expand_cells(suite))
    }
    return plan_suite(suite, execution_id="execution-1", prices=prices, quotas=quotas, histories={})


def test_there_is_a_modern_suite_for_each_file_of_claims() -> None:
    claims = {path.name for path in (SUITES / "claims").glob("*.yaml")}
    assert {path.name for path in ON_AWS} == claims
    assert len(claims) == 4


@pytest.mark.parametrize("path", [*AT_HOME, *ON_AWS], ids=lambda path: path.stem)
def test_a_shipped_suite_compares_cells_with_its_baseline(path: Path) -> None:
    suite = load_suite(path).suite
    cells = expand_cells(suite)
    assert len(cells) > 1
    assert baseline_cell(suite) in cells
    assert expand_cells(parse_suite(suite_document(suite))) == cells


@pytest.mark.parametrize("path", ON_AWS, ids=lambda path: path.stem)
def test_a_modern_suite_is_refused_by_nothing_but_quotas_and_fits_its_cap_once(path: Path) -> None:
    suite = load_suite(path).suite
    planned = plan(suite)
    assert planned.refusals == ()
    assert planned.one_attempt_usd is not None
    assert planned.one_attempt_usd <= suite.limits.max_usd
    assert planned.one_attempt_hours <= suite.limits.max_hours


@pytest.mark.parametrize("path", ON_AWS, ids=lambda path: path.stem)
def test_every_cell_of_a_modern_suite_is_a_job_that_sagemakers_model_knows(path: Path) -> None:
    suite = load_suite(path).suite
    runs = trial_runs("execution-1", expand_cells(suite), [1])
    requests = [build_training_job_request(run, suite, attempt=1, settings=SETTINGS) for run in runs]
    assert [problem for request in requests for problem in model_problems(request)] == []
    asked = {request["ResourceConfig"]["InstanceType"] for request in requests}
    assert asked == {run.cell.settings.instance for run in runs} <= set(PRICES)
