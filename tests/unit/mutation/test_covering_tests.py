"""From coverage's contexts to tests that pytest can be asked for."""

from pathlib import Path

import pytest

from tests.mutation.covering_tests import OUTSIDE, node_id


@pytest.mark.parametrize(
    ("context", "found"),
    [
        ("tests.unit.test_a.test_x", "tests/unit/test_a.py::test_x"),
        ("tests.unit.test_a.TestB.test_x", "tests/unit/test_a.py::TestB::test_x"),
        ("tests.unit.contract.Contract.test_x", OUTSIDE),
        ("", OUTSIDE),
    ],
)
def test_a_context_names_its_test_or_none(tmp_path: Path, context: str, found: str) -> None:
    (tmp_path / "tests/unit").mkdir(parents=True)
    for name in ("test_a.py", "contract.py"):
        (tmp_path / "tests/unit" / name).touch()
    assert node_id(tmp_path, context) == found
