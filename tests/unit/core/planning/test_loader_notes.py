"""The number of loader workers that would use all vCPUs, for suites that vary it."""

from pathlib import Path
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.suites import unprepared_suite
from traindyno.api.suite_loading import load_suite
from traindyno.core.planning.cell_notes import loader_notes

SUITES = Path(__file__).parents[4] / "suites"


def notes(**training: Any) -> list[str]:
    matrix = {
        "loader_workers": training.pop("workers", [0, 4]),
        "instance": training.pop("instances"),
    }
    return list(loader_notes(unprepared_suite(baseline={}, training=training, matrix=matrix).cells))


def test_the_posts_tip_is_computed_for_its_own_suite(snapshot: Snapshot) -> None:
    """96 vCPUs and 8 processes: 12, as the post says; its script takes the number as an
    argument.
    """
    cells = load_suite(SUITES / "albert-scaling" / "original.yaml").suite.cells
    snapshot(list(loader_notes(cells)))


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        (
            {"instances": ["ml.g5.12xlarge", "ml.g4dn.xlarge"]},
            ["12 loader workers in each of its 4", "4 loader"],
        ),
        # one process on an instance of many devices
        (
            {"instances": ["ml.g5.12xlarge"], "strategy": "single"},
            ["48 loader workers in its process"],
        ),
        ({"instances": ["ml.g5.xlarge", "ml.g5.2xlarge"], "workers": [4]}, []),
        ({"instances": ["local.cpu"]}, []),  # unknown vCPUs
    ],
)
def test_each_known_instance_type_has_its_own_number(
    training: dict[str, Any], expected: list[str]
) -> None:
    found = notes(**{"strategy": "ddp", **training})
    assert len(found) == len(expected)
    assert all(words in note for words, note in zip(expected, found, strict=True))
