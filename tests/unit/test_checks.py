"""The CI runs targets of the Makefile, pages name those that exist, and a nightly run has parts."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.nightly import committed_seconds, deal, keep_seconds, note_passed, parse_part

REPO_ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (REPO_ROOT / "Makefile").read_text()


def test_the_workflows_run_the_parts_of_the_script_for_people() -> None:
    folder = REPO_ROOT / ".github" / "workflows"
    texts = {path.stem: path.read_text() for path in folder.glob("*.yml")}
    jobs = {
        name: (workflow, job)
        for workflow, text in texts.items()
        for name, job in yaml.safe_load(text)["jobs"].items()
    }
    runs = {
        name: [step for step in job["steps"] if "run" in step] for name, (_, job) in jobs.items()
    }
    assert runs == {
        name: [{"run": f".ci/run {name}"}] for name in ("check", "unit", "rest", "nightly")
    }
    assert os.access(REPO_ROOT / ".ci" / "run", os.X_OK)
    assert '"${@:-check test}"' in (REPO_ROOT / ".ci" / "run").read_text()
    pythons = jobs["unit"][1]["strategy"]["matrix"]["python"]
    assert pythons == [f"3.{minor}" for minor in range(11, 15)]
    project = tomllib.loads((REPO_ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={pythons[0]}"
    # A tag of an action can be moved to other code, a commit can't; the token of a run may read
    # only.
    used = [step["uses"] for _, job in jobs.values() for step in job["steps"] if "uses" in step]
    assert [
        action for action in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action)
    ] == []
    assert {yaml.safe_load(text)["permissions"]["contents"] for text in texts.values()} == {"read"}
    assert "secrets." not in "".join(texts.values())


def test_every_target_named_on_the_pages_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))
    pages = [
        REPO_ROOT / "README.md",
        REPO_ROOT / "CONTRIBUTING.md",
        *(REPO_ROOT / "docs").rglob("*.md"),
    ]
    named = {
        target for page in pages for target in re.findall(r"`make ([a-z-]+)", page.read_text())
    }
    assert named
    assert named <= targets


def test_the_index_of_the_documentation_names_every_page() -> None:
    index = (REPO_ROOT / "docs" / "README.md").read_text()
    pages = {path.name for path in (REPO_ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages == set(re.findall(r"\(([a-z-]+\.md)\)", index))


def test_each_group_of_tests_is_in_one_part_of_make_nightly_the_longest_apart() -> None:
    seconds = {"local": 90.0, "training": 60.0, "unit": 40.0}
    dealt = deal(["unit", "local", "training", "new", "unit"], seconds, 2)
    assert [set(part) for part in dealt] == [{"local", "new"}, {"training", "unit"}]


def test_parts_of_a_commit_are_dealt_alike_whatever_an_earlier_part_took(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = tmp_path / "seconds.json"
    monkeypatch.setattr("tests.nightly.SECONDS", seconds)
    seconds.write_text('{"slow": 9.0}')
    git = ["git", "-c", "user.name=n", "-c", "user.email=n@example.com", "-C", str(tmp_path)]
    assert committed_seconds() == {"slow": 9.0}
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Seconds"]):
        subprocess.run([*git, *command], check=True)
    keep_seconds({"quick": 0.51})
    assert committed_seconds() == {"slow": 9.0}
    assert json.loads(seconds.read_text()) == {"slow": 9.0, "quick": 0.5}


@pytest.mark.parametrize("text", ["0/4", "5/4", "1", "1/0", "a/b", "1/4/2"])
def test_an_unknown_part_of_make_nightly_is_refused(text: str) -> None:
    with pytest.raises(SystemExit, match=rf"PART={text}: expected a part .* such as 1/4"):
        parse_part(text)


def test_a_part_passed_again_has_one_row() -> None:
    table = "| part | commit | date |\n|---|---|---|\n| 1/4 | old | before |\n| 2/4 | x | y |\n"
    assert note_passed("1/4", table, commit="new", date="today").splitlines()[2:] == [
        "| 2/4 | x | y |",
        "| 1/4 | new | today |",
    ]
