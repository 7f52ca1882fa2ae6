"""Nothing that a job names may be written or read outside of the job's own folder, on any version
of Python.
"""

import gzip
import io
import tarfile
from pathlib import Path

import pytest

from localcloud.sagemaker_service.host.container_tree import is_container_path
from localcloud.sagemaker_service.storage.s3_transfer import (
    DataUnavailable,
    relative_name,
    unpack_data,
)


def member(
    name: str, kind: bytes = tarfile.REGTYPE, linkname: str = "", mode: int = 0o644
) -> tarfile.TarInfo:
    tar_info = tarfile.TarInfo(name)
    tar_info.type = kind
    tar_info.linkname = linkname
    tar_info.mode = mode
    return tar_info


def packed(folder: Path, *members: tarfile.TarInfo) -> Path:
    path = folder / "sourcedir.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for info in members:
            info.size = 4 if info.isreg() else 0
            tar.addfile(info, io.BytesIO(b"text"))
    return path


@pytest.mark.parametrize(
    "members",
    [
        [member("../outside")],
        [member("a/../../outside")],
        [member("/tmp/outside")],
        [member("link", tarfile.SYMTYPE, "/etc")],
        [member("link", tarfile.SYMTYPE, "../outside")],
        [member("deep/link", tarfile.SYMTYPE, "here/../../../outside")],
        [member("link", tarfile.LNKTYPE, "../outside")],
        [member("inside"), member("link", tarfile.SYMTYPE, "inside"), member("link/file")],
        [member("link", tarfile.SYMTYPE, "target"), member("link")],
        [member("pipe", tarfile.FIFOTYPE)],
        [member("device", tarfile.CHRTYPE)],
    ],
    ids=lambda members: f"{members[-1].name} -> {members[-1].linkname}",
)
def test_an_archive_leaving_its_folder_is_refused_whole(
    tmp_path: Path, members: list[tarfile.TarInfo]
) -> None:
    folder = tmp_path / "a" / "code"
    folder.mkdir(parents=True)
    with pytest.raises(DataUnavailable, match=r"can't be unpacked: (member|link)"):
        unpack_data(packed(tmp_path, member("train.py"), *members), folder)
    assert list(folder.iterdir()) == []
    assert {path.name for path in tmp_path.rglob("*")} == {"a", "code", "sourcedir.tar.gz"}


def zeros(folder: Path, size: int, files: int = 1) -> Path:
    """Parts of a gzip file may be compressed apart, so one compressed MiB serves for all."""
    path = folder / "sourcedir.tar.gz"
    packed_mib = gzip.compress(bytes(2**20))
    with path.open("wb") as packed:
        for number in range(files):
            entry = member(f"zeros-{number}")
            entry.size = size
            packed.write(gzip.compress(entry.tobuf()) + packed_mib * (size // 2**20))
        packed.write(gzip.compress(bytes(1024)))
    return path


def test_a_small_archive_of_very_large_content_is_refused_with_sizes_and_limit(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    archive = zeros(tmp_path, 400 * 2**20, files=2)
    assert archive.stat().st_size < 2**20
    words = (
        r"0\.8 MiB become 800\.0 MiB or more; accepted: at most 512\.0 MiB \(512 MiB, or 100 times"
    )
    with pytest.raises(DataUnavailable, match=words):
        unpack_data(archive, folder)
    assert list(folder.iterdir()) == []


def test_an_archive_below_the_limit_is_unpacked_however_well_it_is_packed(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    unpack_data(zeros(tmp_path, 40 * 2**20), folder)
    assert (folder / "zeros-0").stat().st_size == 40 * 2**20


def test_files_folders_and_links_within_the_archive_are_unpacked(tmp_path: Path) -> None:
    folder = tmp_path / "code"
    folder.mkdir()
    archive = packed(
        tmp_path,
        member("lib", tarfile.DIRTYPE, mode=0o777),
        member("lib/data.txt", mode=0o4777),
        member("bin/current", tarfile.SYMTYPE, "../lib/data.txt"),
        member("copy.txt", tarfile.LNKTYPE, "lib/data.txt", mode=0o755),
    )
    unpack_data(archive, folder)
    assert (folder / "bin/current").read_text() == (folder / "copy.txt").read_text() == "text"
    assert (folder / "lib/data.txt").stat().st_mode & 0o7777 == 0o700
    assert (folder / "lib/data.txt").stat().st_uid == folder.stat().st_uid


@pytest.mark.parametrize(
    "key", ["data/a/../../x", "data/../x", "data//../x", "data/.", "data/a/.", "data/./a"]
)
def test_an_s3_key_out_of_its_channel_is_refused(key: str) -> None:
    with pytest.raises(DataUnavailable, match="outside of its channel"):
        relative_name(key, "data/")


def test_an_s3_key_with_dots_in_a_name_is_accepted() -> None:
    assert relative_name("data/part..1/.hidden", "data/") == "part..1/.hidden"


def test_a_container_path_with_parents_is_none() -> None:
    assert is_container_path("/opt/ml/checkpoints")
    assert not is_container_path("/opt/ml/../../etc")
