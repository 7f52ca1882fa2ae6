"""A local cloud whose disk is full says so in one sentence: which folder, what is needed, what helps."""

import os
import subprocess
import urllib.request
from pathlib import Path

import pytest
from typer.testing import CliRunner

from localcloud import cloud, daemons, disk_space
from localcloud.daemons import LocalCloudFailed
from localcloud.deployment import _wait
from localcloud.disk_space import DiskFull, explaining_full_disk, find_full_disk, require_space
from localcloud.home import Home
from localcloud.loopback import free_port
from traindyno.cli.main import commands

ALL = 2**62  # more than any disk has


def assert_told(text: str, folder: Path) -> None:
    assert text.startswith(f"the disk of {folder} ")
    for part in ("B are free", "the local cloud needs", "free space on it, or set TRAINDYNO_HOME"):
        assert part in text


def test_a_start_with_too_little_space_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "not" / "there"
    require_space(home)
    monkeypatch.setattr(disk_space, "NEEDED_BYTES", ALL)
    with pytest.raises(DiskFull) as told:
        require_space(home)
    assert_told(str(told.value), home)


def test_an_error_on_a_full_disk_is_explained_by_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LocalCloudFailed, match="of its own"), explaining_full_disk(tmp_path):
        raise LocalCloudFailed("an error of its own")
    with pytest.raises(DiskFull) as told, explaining_full_disk(tmp_path):
        Path("/dev/full").write_text("nothing can be written here")
    assert_told(str(told.value), tmp_path)
    monkeypatch.setattr(disk_space, "LEAST_BYTES", ALL)
    with pytest.raises(DiskFull), explaining_full_disk(tmp_path):
        raise LocalCloudFailed("cdk deploy failed with 1")


def test_a_failed_executions_cause_is_explained_if_it_was_a_full_disk(tmp_path: Path) -> None:
    assert find_full_disk(tmp_path, cause="KeyError: 'x'") is None
    told = find_full_disk(tmp_path, cause='{"errorMessage": "[Errno 28] No space left on device"}')
    assert told is not None
    assert f"the disk of {tmp_path} was full" in told
    assert_told(told, tmp_path)


def test_a_program_that_waits_on_a_full_disk_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "LEAST_BYTES", ALL)
    process = subprocess.Popen(["sleep", "60"])
    with pytest.raises(DiskFull):
        _wait(process, Home(tmp_path))
    assert process.poll() is not None


def test_a_part_that_starts_on_a_full_disk_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_space, "LEAST_BYTES", ALL)
    home, port = Home(tmp_path / "home"), free_port()
    health = urllib.request.Request(f"http://127.0.0.1:{port}/health")
    command = ["sh", "-c", "sleep 20; touch waited"]
    with pytest.raises(DiskFull):
        daemons.start(home, "part", command, port=port, health=health, environment={**os.environ}, folder=tmp_path)
    assert daemons.running(home, "part") is None
    assert not (tmp_path / "waited").exists()


def test_up_explains_an_error_that_a_full_disk_led_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRAINDYNO_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(cloud, "start", lambda *_, **__: Path("/dev/full").write_text("nothing can be written here"))
    up = CliRunner().invoke(commands, ["local", "up"])
    assert isinstance(up.exception, DiskFull)
    assert_told(str(up.exception), tmp_path / "home")
