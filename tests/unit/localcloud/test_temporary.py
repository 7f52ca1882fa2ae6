"""Jobs of the local cloud have temporary files below its home, and nothing else is removed."""

from pathlib import Path

import pytest

from localcloud.home import Home
from localcloud.temporary import TEMPORARY_PREFIX, job_temporary_environment


def test_only_leftovers_of_this_homes_jobs_are_removed(tmp_path: Path) -> None:
    folder = tmp_path / "tmp"
    for name in (f"{TEMPORARY_PREFIX}left", "ministack-lambda-1", "traindyno-1-mine"):
        (folder / name / "file").mkdir(parents=True)
    job_temporary_environment(Home(tmp_path))
    assert {path.name for path in folder.iterdir()} == {"ministack-lambda-1", "traindyno-1-mine"}


@pytest.mark.parametrize(("characters", "is_below"), [(35, True), (36, False)])
def test_sockets_of_a_job_fit_below_its_temporary_folder(
    characters: int, is_below: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A home of 35 characters, /tmp and 68 of the longest socket are the 107 that Linux allows."""
    monkeypatch.chdir(tmp_path)
    home = Home(Path("h" * characters))
    home.folder.mkdir()
    expected = {"TMPDIR": str(home.folder / "tmp")} if is_below else {}
    assert job_temporary_environment(home) == expected
