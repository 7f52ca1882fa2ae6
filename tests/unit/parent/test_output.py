"""What a run writes: its output, and files in folders of its own."""

import os
from pathlib import Path

import pytest

from tests.unit.parent.shared_job import SharedJob, run_document
from traindyno.parent.output import RunOutput

SHOWN_BYTES = 256 * 1024
LINE = b"step 1 of 10, loss 0.5\n"


def test_a_run_finds_its_folders_empty_and_only_results_stay(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    runs = [run_document("a", "--leave", "of-a"), run_document("b", "--leave", "of-b")]
    job = SharedJob(root=tmp_path, runs=runs, environment={"TMPDIR": str(tmp_path / "tmp")})
    exit_code, output = job.carry()
    assert exit_code == 0, output
    names = ("TMPDIR", "TORCHINDUCTOR_CACHE_DIR", "SM_MODEL_DIR", "SM_OUTPUT_DATA_DIR")
    for run_id in ("a", "b"):
        assert job.log(run_id) == ["began", *(f"{name} 0" for name in names)]
    left = (path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("of-*"))
    assert sorted(left) == [f"algo-1/{kept}/{run}/of-{run}" for kept in ("model", "output/data") for run in ("a", "b")]


@pytest.mark.parametrize("kibibytes", [1, 255, 300, 2000])
def test_output_is_shown_in_part_and_logged_whole(
    kibibytes: int, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    output, text = RunOutput(tmp_path / "a.log", "a"), LINE * (kibibytes * 1024 // (len(LINE) + len("[a] ")))
    for part in (text[:100], text[100:]):
        descriptor = output.open()
        os.write(descriptor, part)
        os.close(descriptor)
        output.show_new()
    output.finish()
    shown = capsysbinary.readouterr().out
    assert (tmp_path / "a.log").read_bytes() == text
    assert len(shown) <= SHOWN_BYTES + 100
    if kibibytes <= SHOWN_BYTES // 1024:
        assert shown == text.replace(b"step", b"[a] step")
    else:
        assert shown.endswith(b"more than this is in a.log of the job's output\n")
