"""What the suites that try out a lab may cost, planned from files with the prices that are recorded
here.
"""

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.local.forked_programs import REPO_ROOT, run_command

# us-east-1; ml.trn1.2xlarge is EC2's price with the 15 % that ml.trn1.32xlarge costs more than
# EC2's.
PRICES = {
    "ml.m5.large": 0.115,
    "ml.g5.xlarge": 1.408,
    "ml.g5.12xlarge": 7.09,
    "ml.trn1.2xlarge": 1.55,
}
# Prices of other regions are higher; in eu-central-1 ml.m5.large costs $0.138.
OTHER_REGION = 1.2
# Quotas that the page tells the reader to ask for.
NEEDED = {
    "smoke_aws": {"ml.m5.large": 1},
    "smoke_gpu": {"ml.m5.large": 1, "ml.g5.xlarge": 2, "ml.g5.12xlarge": 1},
    "smoke_trainium": {"ml.m5.large": 1, "ml.trn1.2xlarge": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All plans share it: the check of a suite's model, which imports transformers, is made once
    and kept there.
    """
    return tmp_path_factory.mktemp("plans")


def plan(
    folder: Path, suite: str, *, factor: float = 1.0, granted: dict[str, int] | None = None
) -> dict[str, Any]:
    prices = {name: round(usd * factor, 4) for name, usd in PRICES.items()}
    quotas = {
        f"{name} for training job usage": count
        for name, count in (granted or NEEDED[suite]).items()
    }
    files = {
        "prices.yaml": {"region": "us-east-1", "as_of": "2026-11-21", "prices": prices},
        "quotas.yaml": {
            "region": "us-east-1",
            "quotas": {**quotas, "Number of instances across all training jobs": 4},
        },
    }
    for name, document in files.items():
        (folder / name).write_text(yaml.safe_dump(document))
    inputs = ("--prices", "prices.yaml", "--quotas", "quotas.yaml", "--format", "json")
    planned: dict[str, Any] = run_command(
        "plan", f"{REPO_ROOT}/suites/{suite}.yaml", *inputs, folder=folder
    ).json()
    return planned


@pytest.mark.parametrize(
    ("suite", "expected_usd", "cap_usd"),
    [("smoke_aws", "0.23", "0.30"), ("smoke_gpu", "7", "18"), ("smoke_trainium", "4", "9")],
)
def test_smoke_suite_costs_no_more_than_expected_and_needs_the_quotas_of_its_page(
    suite: str, expected_usd: str, cap_usd: str, folder: Path
) -> None:
    """The expected cost is that of one attempt of each job, for the longest time that the job may
    take.
    """
    planned = plan(folder, suite)
    assert not planned["is_refused"]
    assert Decimal(planned["one_attempt_usd"]) <= Decimal(expected_usd)
    assert Decimal(planned["worst_case_usd"]) <= Decimal(cap_usd)
    elsewhere = plan(folder, suite, factor=OTHER_REGION)
    assert not elsewhere["is_refused"]
    assert Decimal(elsewhere["worst_case_usd"]) <= Decimal(cap_usd), (
        "the cap leaves a margin for other regions"
    )
    # the page lists the quotas that it needs, and its cap
    page = (REPO_ROOT / "docs/lab-in-aws.md").read_text()
    (row,) = [
        line
        for line in page.splitlines()
        if f"run suites/{suite}.yaml" in line and line.startswith("|")
    ]
    assert all(f"{count} × `{name}`" in row for name, count in NEEDED[suite].items())
    cap = Decimal(planned["limits"]["max_usd"])
    assert f"${cap:.2f}" in row or f"${cap}" in row
    for missing in NEEDED[suite]:
        fewer = {**NEEDED[suite], missing: NEEDED[suite][missing] - 1}
        assert plan(folder, suite, granted=fewer)["is_refused"], f"{missing} is not needed"
