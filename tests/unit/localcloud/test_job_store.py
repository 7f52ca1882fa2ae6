"""The file of the local cloud's jobs has a version: a new file gets today's, a file of another version is refused."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from localcloud.sagemaker_service.__main__ import main
from localcloud.sagemaker_service.jobs.job_store import FORMAT, JobStore
from traindyno.core.documents.versions import VersionUnknown


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


def version_of(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute("pragma user_version").fetchone()[0])


def write_version(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"pragma user_version={version}")


def open_store(path: Path) -> JobStore:
    return JobStore(path, lambda _: [])


def with_a_document(path: Path) -> None:
    store = open_store(path)
    store.put_document("fault", "f", {"seed": 7})
    store.close()


def test_a_new_file_gets_todays_version_and_is_read_again(path: Path) -> None:
    with_a_document(path)
    assert version_of(path) == FORMAT.version == 1
    store = open_store(path)
    assert store.documents("fault") == {"f": {"seed": 7}}
    store.close()


def test_a_file_without_tables_counts_as_new(path: Path) -> None:
    path.touch()
    open_store(path).close()
    assert version_of(path) == FORMAT.version


@pytest.mark.parametrize(
    ("version", "found"),
    [(0, "user_version 0 of another Traindyno"), (2, "user_version 2 of another Traindyno")],
)
def test_tables_of_another_version_are_refused_and_left_as_they_are(path: Path, version: int, found: str) -> None:
    with_a_document(path)
    write_version(path, version)
    with pytest.raises(VersionUnknown) as refused:
        open_store(path)
    assert str(refused.value) == (
        f"{path}: the local cloud's stored jobs: got {found}, expected 1;"
        " to remove all state of the local cloud: traindyno local down --erase"
    )
    assert version_of(path) == version


def test_the_service_ends_with_the_sentence_and_not_with_a_traceback(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_document(path)
    write_version(path, 2)
    monkeypatch.setattr("localcloud.sagemaker_service.__main__._log_to", lambda _: None)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    with pytest.raises(SystemExit, match=r"got user_version 2.*expected 1.*traindyno local down --erase"):
        main(["--state", str(path.parent), "--aws-endpoint", "http://127.0.0.1:9"])
