import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from traindyno.bundle import SourceRefused, pack, script_files, training_files


def names(archive: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        return opened.getnames()


def test_the_same_files_give_the_same_bytes_at_any_time(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print(1)")
    first = pack(script_files(tmp_path))
    os.utime(tmp_path / "train.py", (1, 1))
    assert pack(script_files(tmp_path)) == first


def test_a_users_folder_travels_with_the_callbacks_and_without_caches(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from traindyno.callbacks import step_log")
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "train.pyc").write_text("x")
    packed = names(pack(script_files(tmp_path)))
    assert "train.py" in packed
    assert "traindyno/core/step_log/line.py" in packed
    assert "traindyno/callbacks/__init__.py" in packed
    assert [name for name in packed if "pycache" in name] == []


def test_the_callbacks_import_from_the_unpacked_tarball_alone(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    source.mkdir()
    (source / "train.py").write_text("import traindyno.callbacks; print('imported')")
    with tarfile.open(fileobj=io.BytesIO(pack(script_files(source)))) as opened:
        opened.extractall(target)
    ran = subprocess.run(
        [sys.executable, "-S", str(target / "train.py")], capture_output=True, text=True, check=False, cwd=target
    )
    assert ran.stdout.strip() == "imported", ran.stderr


def test_a_folder_of_our_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "traindyno").mkdir()
    (tmp_path / "traindyno" / "x.py").write_text("")
    with pytest.raises(SourceRefused, match="rename yours"):
        script_files(tmp_path)


def test_the_built_in_tarball_has_its_entry_point_at_the_top() -> None:
    packed = training_files()
    assert "traindyno_train.py" in packed
    assert "training/main.py" in packed
    assert not any(name.startswith(("traindyno/aws", "traindyno/cli", "tests")) for name in packed)


def test_without_a_checkout_the_training_code_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match=r"has no folder training.*clone it"):
        training_files(tmp_path)
