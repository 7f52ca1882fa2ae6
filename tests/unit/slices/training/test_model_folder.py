"""A trained model is left as a folder, or the reason is said and the model stays in S3."""

import io
import re
import tarfile
from pathlib import Path

import pytest

from tests.unit.lab_in_memory import MemoryObjects
from traindyno.slices.training.model_folder import ModelNotLeft, leave_model
from traindyno.store import results_bucket


def archive_of(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


def test_the_archive_is_unpacked_as_its_parts_arrive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results_bucket, "PART_BYTES", 7)
    bucket = MemoryObjects()
    weights = bytes(range(256)) * 400
    packed = archive_of(**{"config.json": b"{}", "best/model.safetensors": weights})
    bucket.write("model.tar.gz", packed, "")
    (tmp_path / "config.json").write_text("of before")
    leave_model(bucket, "model.tar.gz", tmp_path)
    assert (tmp_path / "config.json").read_bytes() == b"{}"
    assert (tmp_path / "best/model.safetensors").read_bytes() == weights


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (archive_of(**{"../outside": b"x"}), "is no whole archive"),
        (archive_of(**{"/outside": b"x"}), "'/outside' leaves its folder"),
        (archive_of(weights=bytes(9_000))[:60], "is no whole archive"),
        (b"no archive", "is no whole archive"),
    ],
    ids=["a member outside", "an absolute member", "cut off", "no archive"],
)
def test_a_damaged_archive_stays_at_its_place(content: bytes, told: str, tmp_path: Path) -> None:
    bucket = MemoryObjects()
    bucket.write("model.tar.gz", content, "")
    with pytest.raises(ModelNotLeft, match=told):
        leave_model(bucket, "model.tar.gz", tmp_path / "folder")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_an_unmakeable_folder_is_named_with_the_place_of_the_model(tmp_path: Path) -> None:
    bucket = MemoryObjects()
    bucket.write("model.tar.gz", archive_of(config=b"{}"), "")
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelNotLeft, match=re.escape("it stays at s3://results/model.tar.gz")):
        leave_model(bucket, "model.tar.gz", tmp_path / "file")
