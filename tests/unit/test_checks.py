"""The checks that run before a commit are those of `make check`, the documented targets exist, and names are short."""

import re
from pathlib import Path

import yaml

REPO_ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = (REPO_ROOT / "Makefile").read_text()
TESTS = REPO_ROOT / "tests"


def test_pre_commit_runs_what_make_check_runs() -> None:
    (parts,) = re.findall(r"^check: ([a-z ]+?) ##", MAKEFILE, flags=re.MULTILINE)
    (repository,) = yaml.safe_load((REPO_ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    assert [hook["entry"] for hook in repository["hooks"]] == [f"make {part}" for part in parts.split()]


def test_every_target_that_the_pages_name_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", MAKEFILE, flags=re.MULTILINE))
    pages = [REPO_ROOT / "README.md", REPO_ROOT / "CONTRIBUTING.md", *(REPO_ROOT / "docs").rglob("*.md")]
    named = {target for page in pages for target in re.findall(r"`make ([a-z-]+)", page.read_text())}
    assert named
    assert named <= targets


def test_the_index_of_the_documentation_names_every_page() -> None:
    index = (REPO_ROOT / "docs" / "README.md").read_text()
    pages = {path.name for path in (REPO_ROOT / "docs").glob("*.md")} - {"README.md"}
    assert pages == set(re.findall(r"\(([a-z-]+\.md)\)", index))


def test_make_chaos_runs_every_repeat_that_make_test_leaves_out() -> None:
    repeats = {
        path.relative_to(REPO_ROOT).as_posix()
        for path in TESTS.rglob("test_*.py")
        if re.search(r"^from tests\.local\.repeats import .*\brepeat_of\b", path.read_text(), flags=re.MULTILINE)
    }
    (line,) = [line for line in MAKEFILE.splitlines() if "TRAINDYNO_REPEATS=1" in line]
    assert repeats == set(re.findall(r"tests/\S+\.py", line))


def test_names_of_tests_have_fewer_than_80_characters() -> None:
    names = {name for path in TESTS.rglob("*.py") for name in re.findall(r"\bdef (test_\w+)", path.read_text())}
    assert "test_names_of_tests_have_fewer_than_80_characters" in names
    assert [name for name in sorted(names) if len(name) >= 80] == []
