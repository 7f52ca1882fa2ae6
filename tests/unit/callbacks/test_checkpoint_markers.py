"""A checkpoint of which any bit has changed is refused, and the one before it is used."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from traindyno.callbacks.checkpoints import (
    CheckpointRefused,
    mark_complete,
    newest_complete,
    read_marker,
)
from traindyno.core.step_log.line import CHECKPOINTS_VARIABLE, DIRECTORY_VARIABLE

FACTS = {
    "step": 40,
    "identity": {"strategy": "single", "learning_rate": 0.1},
    "scaler": {},
    "processes": 1,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two complete checkpoints, ``b`` after ``a``."""
    for written_at, name in ((1_700_000_000.5, "a"), (1_700_000_600.5, "b")):
        monkeypatch.setattr("time.time", lambda at=written_at: at)
        (tmp_path / name).mkdir()
        (tmp_path / name / "weights").write_bytes(f"weights of {name}".encode())
        (tmp_path / name / "optimizer").write_bytes(f"moments of {name}".encode())
        mark_complete(tmp_path / name, FACTS)
    return tmp_path


def with_a_bit_changed(path: Path, *, every: int = 1) -> Iterator[None]:
    """The file with one bit changed: each bit in turn, or one of ``every`` so many."""
    whole = path.read_bytes()
    for bit in range(0, 8 * len(whole), every):
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        yield
    path.write_bytes(whole)


def test_a_changed_bit_of_a_marker_is_found_or_changes_nothing(folder: Path) -> None:
    whole = read_marker(folder / "b")
    refusals = 0
    for _ in with_a_bit_changed(folder / "b" / "complete.json"):
        try:
            assert read_marker(folder / "b") == whole  # white space
        except CheckpointRefused:
            refusals += 1
    assert refusals > 1000


@pytest.mark.parametrize("name", ["complete.json", "weights"])
def test_a_changed_bit_means_the_checkpoint_before(name: str, folder: Path) -> None:
    assert newest_complete(folder) == str(folder / "b")
    for _ in with_a_bit_changed(folder / "b" / name, every=47 if name == "complete.json" else 1):
        assert newest_complete(folder) == str(folder / "a")
    assert newest_complete(folder) == str(folder / "b")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("weights", b"", "bytes; expected"),
        ("weights", b"weights of c", "has checksum"),
        ("weights", None, "can't be read"),
        ("complete.json", b"{", "is damaged"),
        ("complete.json", None, "it was not finished"),
    ],
)
def test_a_refused_checkpoint_says_its_fault(
    name: str, content: bytes | None, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = folder / "b" / name
    path.unlink() if content is None else path.write_bytes(content)
    assert newest_complete(folder) == str(folder / "a")
    assert said in capsys.readouterr().err


def test_a_checkpoint_is_used_with_a_log_of_its_time(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    log = folder / "job-a1" / "rank-00000.1700000000000.jsonl"
    log.parent.mkdir()
    log.write_text("{}\n" * 10)
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(folder))
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder))
    monkeypatch.setenv("TRAINING_JOB_NAME", "job-a1")
    mark_complete(folder / "b", FACTS)
    log.write_text("{}\n" * 9)
    assert newest_complete(folder) == str(folder / "a")
    assert (
        f"the log of its steps, {log}, has 27 bytes; expected at least 30"
        in capsys.readouterr().err
    )
    log.unlink()
    assert newest_complete(folder) == str(folder / "a")
    monkeypatch.delenv(DIRECTORY_VARIABLE)  # outside Traindyno nothing reads the log
    assert newest_complete(folder) == str(folder / "b")


def test_a_checkpoint_of_another_run_needs_no_log_of_this_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = folder.with_name("other-log") / "job-a1" / "rank-00000.1700000000000.jsonl"
    log.parent.mkdir(parents=True)
    log.write_text("{}\n")
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(log.parents[1]))
    monkeypatch.setenv("TRAINING_JOB_NAME", "job-a1")
    mark_complete(folder / "b", FACTS)
    assert read_marker(folder / "b")["log"]
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(folder.with_name("own-log")))
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder.with_name("own")))
    assert newest_complete(folder) == str(folder / "b")
    monkeypatch.setenv(CHECKPOINTS_VARIABLE, str(folder.parent))
    assert newest_complete(folder) == str(folder / "a")


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"version": 1}', "[" * 100_000, '{"version": 1' + "0" * 5000 + "}", "\0"],
)
def test_other_files_are_refused_as_markers(content: str, folder: Path) -> None:
    (folder / "b" / "complete.json").write_text(content)
    with pytest.raises(CheckpointRefused, match=r"complete\.json"):
        read_marker(folder / "b")
    assert newest_complete(folder) == str(folder / "a")


def test_facts_come_back_as_json_holds_them(folder: Path) -> None:
    mark_complete(folder / "b", {"é": [1.5, float("inf")], "steps": {7: "seven"}, "text": "\ud800"})
    assert read_marker(folder / "b")["facts"] == {
        "é": [1.5, float("inf")],
        "steps": {"7": "seven"},
        "text": "\ud800",
    }
