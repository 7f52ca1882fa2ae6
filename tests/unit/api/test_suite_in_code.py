"""A suite from a file, from text and from Python values is the same suite, with the same problems."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.suites import small_document
from traindyno import Suite, SuiteInvalid
from traindyno.api.suite_loading import check_startable
from traindyno.api.suite_text import SuiteUnreadable

DAMAGED = {**small_document(), "goal": "quickest", "limits": {"max_usd": "much"}, "mattrix": {}}


def problems_of(make: Any) -> list[str]:
    with pytest.raises(SuiteInvalid) as refused:
        make()
    return [str(problem) for problem in refused.value.problems]


def test_three_ways_to_one_suite(tmp_path: Path) -> None:
    text = yaml.safe_dump(small_document())
    (tmp_path / "suite.yaml").write_text(text)
    found = [Suite.from_file(tmp_path / "suite.yaml"), Suite.from_text(text), Suite.of(**small_document())]
    assert [each.document for each in found] == [small_document()] * 3
    assert found[0].suite == found[1].suite == found[2].suite


def test_all_problems_come_at_once_in_each_way(tmp_path: Path) -> None:
    path = tmp_path / "suite.yaml"
    path.write_text(yaml.safe_dump(DAMAGED))
    in_code = problems_of(lambda: Suite.of(**DAMAGED))
    assert len(in_code) >= 4
    assert (
        problems_of(lambda: Suite.from_file(path)) == problems_of(lambda: Suite.from_text(path.read_text())) == in_code
    )


def test_problems_of_a_text_name_its_lines() -> None:
    with pytest.raises(SuiteInvalid) as refused:
        Suite.from_text(json.dumps(DAMAGED, indent=1))
    assert all(line.startswith("<text>:") for line in str(refused.value).splitlines())
    with pytest.raises(SuiteUnreadable, match=r"^<text>:1: found a list; expected a mapping"):
        Suite.from_text("[1, 2]")


def test_python_values_become_those_of_json() -> None:
    """The state machine receives JSON: a tuple is a list there, and a path its text."""
    changed = small_document(matrix={"compiler": ("none", "inductor")})
    changed["workload"]["dataset"] = {"path": Path("s3:/x").with_name("data.txt")}
    suite = Suite.of(**changed)
    assert suite.document["matrix"] == {"compiler": ["none", "inductor"]}
    assert suite.document["workload"]["dataset"] == {"path": "s3:/data.txt"}
    assert "a value has no JSON form" in problems_of(lambda: Suite.of(**small_document(goal=object())))[0]


def test_relative_paths_start_at_the_folder_of_the_suite(tmp_path: Path) -> None:
    workload = {**small_document()["workload"], "dataset": {"path": "./data.txt"}}
    suite = Suite.of(folder=tmp_path, **small_document(workload=workload))
    (problem,) = problems_of(lambda: check_startable(suite))
    assert problem.startswith(
        f"workload.dataset.path: './data.txt' does not exist on this machine (expected {tmp_path}"
    )
    (tmp_path / "data.txt").write_text("a line\n")
    check_startable(suite)
