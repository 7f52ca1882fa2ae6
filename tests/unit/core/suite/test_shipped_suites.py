"""The suites that come with the project: each can be read and planned, and asks for jobs that
SageMaker knows.
"""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.unit.planned_suites import ample_quotas, prices_of
from tests.unit.run_samples import known
from tests.unit.sagemaker.test_request import SETTINGS, model_problems
from tests.unit.suites import with_staged_source
from traindyno.api.suite_loading import load_suite
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Compiler
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import suite_document
from traindyno.features import FEATURES
from traindyno.sagemaker.request import build_training_job_request

SUITES = Path(__file__).parents[4] / "suites"
PACKS = ("albert-scaling", "bert-trainium", "gpt2-compiler", "gptj-parallel")
# What these leave out is read in their data with the training libraries: tests/training has them.
READ_FROM_DATA = ("finetune_chat", "own_model")
AT_HOME = sorted(path for path in SUITES.glob("*.yaml") if path.stem not in READ_FROM_DATA)
MODERN = [SUITES / pack / "modern.yaml" for pack in PACKS]
ORIGINAL = [SUITES / pack / "original.yaml" for pack in PACKS]
LOCAL = [SUITES / pack / "local.yaml" for pack in PACKS]
ON_AWS = [*ORIGINAL, *MODERN]
# USD an hour. Published: trn1 in 2023, the others in 2021 to 2026. Nobody published g6e, trn2 and
# m7i: estimates.
PRICES = {
    "ml.g4dn.12xlarge": "4.89",
    "ml.g5.12xlarge": "7.09",
    "ml.g6e.12xlarge": "13.12",
    "ml.p4d.24xlarge": "25.251286",
    "ml.p5.48xlarge": "63.296",
    "ml.trn1.32xlarge": "24.725",
    "ml.trn2.48xlarge": "45",
    "ml.m7i.xlarge": "0.242",
    "local.cpu": "0.10",  # nominal
}


def plan(suite: Suite, usd_per_hour: Mapping[str, str] = PRICES) -> Plan:
    prices = prices_of(usd_per_hour)
    quotas = ample_quotas(suite)
    return plan_suite(suite, execution_id="execution-1", prices=prices, quotas=quotas, histories={})


def named(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_every_pack_has_its_suites_and_its_claims() -> None:
    packs = {path.parent.name for path in SUITES.glob("*/claims.yaml")}
    assert packs == set(PACKS)
    for pack in PACKS:
        assert {"original.yaml", "modern.yaml", "local.yaml"} <= {
            path.name for path in (SUITES / pack).glob("*.yaml")
        }


@pytest.mark.parametrize("path", [*AT_HOME, *LOCAL, *ON_AWS], ids=named)
def test_a_shipped_suite_compares_cells_with_its_baseline(path: Path) -> None:
    check_baseline(path)


def check_baseline(path: Path) -> None:
    suite = load_suite(path, local=path.parent == SUITES).suite
    cells = suite.cells
    assert len(cells) > 1
    assert suite.baseline_cell in cells
    assert parse_suite(suite_document(suite), FEATURES).cells == cells


@pytest.mark.parametrize("path", ON_AWS, ids=named)
def test_a_suite_of_a_pack_is_refused_by_nothing_but_quotas_and_fits_its_cap_once(
    path: Path,
) -> None:
    suite = load_suite(path, local=path.parent == SUITES).suite
    planned = plan(suite)
    assert planned.refusals == ()
    assert known(planned.one_attempt_usd) <= suite.limits.max_usd
    assert planned.one_attempt_hours <= suite.limits.max_hours


@pytest.mark.parametrize("path", ON_AWS, ids=named)
def test_every_cell_of_a_pack_is_a_job_of_sagemakers_model(path: Path) -> None:
    suite = with_staged_source(load_suite(path, local=path.parent == SUITES).suite)
    runs = trial_runs("execution-1", suite.cells, [1])
    requests = [
        build_training_job_request(run, suite, attempt=1, settings=SETTINGS) for run in runs
    ]
    assert [problem for request in requests for problem in model_problems(request)] == []
    asked = {request["ResourceConfig"]["InstanceType"] for request in requests}
    assert asked == {run.cell.settings.instance for run in runs} <= set(PRICES)


@pytest.mark.parametrize("path", MODERN, ids=named)
def test_the_runs_of_a_modern_suite_share_jobs(path: Path) -> None:
    planned = plan(load_suite(path).suite)
    assert sum(lane.job_count for lane in planned.lanes) < planned.run_count


@pytest.mark.parametrize("path", LOCAL, ids=named)
def test_local_suite_of_a_pack_is_planned_on_this_machine_with_2_or_4_instances(path: Path) -> None:
    suite = load_suite(path, local=path.parent == SUITES).suite
    planned = plan(suite)
    assert planned.refusals == ()
    assert {lane.instance_type for lane in planned.lanes} == {"local.cpu"}
    assert {cell.settings.instance_count for cell in planned.cells} <= {2, 4}
    # Three trials of each cell and the preparation in four minutes, at some 15 seconds each
    assert planned.run_count <= 15
    # a cell that compiles or imports PyTorch/XLA has the time on a busy machine
    if any(cell.settings.compiler is not Compiler.NONE for cell in planned.cells):
        assert (suite.limits.max_run_seconds or suite.limits.max_job_seconds) >= 900


@pytest.mark.parametrize("pack", PACKS)
def test_a_page_promises_the_upper_bound_of_the_plan_at_its_prices(
    pack: str,
) -> None:
    page = (SUITES.parent / "docs" / "experiments" / f"{pack}.md").read_text()
    (sentence,) = re.findall(r"Upper bound at ([^:]*: \$[0-9,]+)", page)
    terms, _, promised = sentence.partition(": $")
    suite = load_suite(SUITES / pack / "original.yaml").suite
    types = {cell.settings.instance for cell in suite.cells}
    # an amount with the type that it buys; without one, it buys all of the suite's
    named = re.findall(r"\$([0-9.]*[0-9])(?:[^$]*?(ml\.[\w.-]*\w))?", terms)
    prices = {name: usd for usd, type_ in named for name in ([type_] if type_ else types)}
    assert prices.keys() == types
    hours = re.search(r"the limit of ([\d.]+) h per job", terms)
    assert hours is None or float(hours[1]) * 3600 == suite.limits.max_job_seconds
    assert promised == f"{known(plan(suite, {**PRICES, **prices}).one_attempt_usd):,.0f}"
