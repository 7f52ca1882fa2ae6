"""Paths that no machine can have are refused by their name."""

from pathlib import Path

import pytest

from traindyno.api.local_paths import find_local, path_problem, source_problem


@pytest.mark.parametrize(
    "path",
    [
        *("", "x" * 300, "./" + "x" * 300, "s3://", "s3:///key", "./no.csv"),
        *("my data/reviews", "reviews.CSV", "a/b/c", "C:\\x\\y", "data.xlsx", "s3:/b/x", "http:/x"),
    ],
)
def test_a_path_to_nothing_is_refused(path: str, tmp_path: Path) -> None:
    problem = path_problem(path, tmp_path)
    assert problem is not None
    assert "expected" in problem
    assert len(problem) < 700


@pytest.mark.parametrize(
    "path", ["nyu-mll/glue", "Qwen/Qwen2.5-0.5B", "gpt2", "s3://bucket/key/", "s3://bucket"]
)
def test_a_path_elsewhere_is_none_of_this_machine(path: str, tmp_path: Path) -> None:
    assert path_problem(path, tmp_path) is None
    assert find_local(path, tmp_path) is None


def test_a_source_or_program_with_too_long_a_name_is_refused(tmp_path: Path) -> None:
    assert source_problem("x" * 300, None, tmp_path) is not None
    problem = source_problem(".", "x" * 300, tmp_path)
    assert problem is not None
    assert problem[0] == "entry_point"


def test_a_missing_path_is_said_once_with_the_likely_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "reviews.csv").touch()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    problem = path_problem("../review.csv", Path())
    missing = "'../review.csv' does not exist on this machine"
    assert problem is not None
    assert problem.startswith(f'{missing}: did you mean "../reviews.csv"? Expected a local file')
    assert "did you mean" not in (path_problem("../other.csv", Path()) or "")
    Path("../dangling.csv").symlink_to("nowhere")
    assert "did you mean" not in (path_problem("../dangling.csv", Path()) or "")
