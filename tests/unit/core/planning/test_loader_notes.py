"""The number of loader workers that would use all vCPUs, for suites that vary it."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.suites import unprepared_suite
from traindyno.api.suite_loading import load_suite
from traindyno.core.planning.plan import loader_notes
from traindyno.core.suite.cells import expand_cells

SUITES = Path(__file__).parents[4] / "suites"


def notes(**training: Any) -> list[str]:
    matrix = {"loader_workers": training.pop("workers", [0, 4]), "instance": training.pop("instances")}
    return list(loader_notes(expand_cells(unprepared_suite(baseline={}, training=training, matrix=matrix))))


def test_the_posts_tip_is_computed_for_its_own_suite() -> None:
    """96 vCPUs and 8 processes: 12, as the post says; its script takes the number as an argument."""
    cells = expand_cells(load_suite(SUITES / "albert-scaling" / "original.yaml").suite)
    assert list(loader_notes(cells)) == [
        "ml.p4d.24xlarge has 96 vCPUs: 12 loader workers in each of its 8 processes would use all of them"
    ]


def test_each_instance_type_has_its_own_number() -> None:
    assert notes(strategy="ddp", instances=["ml.g5.12xlarge", "ml.g5.24xlarge", "ml.g4dn.xlarge"]) == [
        "ml.g5.12xlarge has 48 vCPUs: 12 loader workers in each of its 4 processes would use all of them",
        "ml.g5.24xlarge has 96 vCPUs: 24 loader workers in each of its 4 processes would use all of them",
        "ml.g4dn.xlarge has 4 vCPUs: 4 loader workers in its process would use all of them",
    ]


def test_strategy_single_has_one_process_on_an_instance_of_many_devices() -> None:
    (note,) = notes(strategy="single", instances=["ml.g5.12xlarge"])
    assert note == "ml.g5.12xlarge has 48 vCPUs: 48 loader workers in its process would use all of them"


@pytest.mark.parametrize(
    "training",
    [
        {"workers": [4], "instances": ["ml.g5.xlarge", "ml.g5.2xlarge"]},
        {"instances": ["local.cpu"]},
        {"instances": ["ml.g7.24xlarge"]},
    ],
    ids=["one number of workers", "unknown vCPUs", "unknown devices"],
)
def test_suite_with_one_number_of_workers_or_unknown_hardware_has_no_note(training: dict[str, Any]) -> None:
    assert notes(strategy="ddp", **training) == []
