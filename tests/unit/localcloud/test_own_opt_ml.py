"""A job's processes see a folder of their own as /opt/ml, and the machine's /opt stays as it is."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localcloud.sagemaker_service.host.own_opt_ml import with_own_opt_ml

# Writes, lets the other one write, and then reads what is there.
WRITE_AND_READ = """
import pathlib, sys
file = pathlib.Path("/opt/ml/checkpoints/x")
file.parent.mkdir(parents=True, exist_ok=True)
file.write_text(sys.argv[1])
print("written", flush=True)
sys.stdin.readline()
print(file.read_text())
"""
NAMESPACES = subprocess.run(["unshare", "--user", "--mount", "true"], check=False).returncode == 0


def names_in_opt() -> set[str]:
    return {path.name for path in Path("/opt").iterdir()}


def start(folder: Path, text: str) -> "subprocess.Popen[str]":
    command = with_own_opt_ml(folder, [sys.executable, "-c", WRITE_AND_READ, text])
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.skipif(not NAMESPACES, reason="this kernel refuses namespaces")
def test_two_commands_at_once_do_not_see_each_others_opt_ml(tmp_path: Path) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
    opt_before = names_in_opt()
    processes = [start(folder, folder.name) for folder in folders]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
    assert [process.communicate("go\n", timeout=20)[0] for process in processes] == [
        "one\n",
        "two\n",
    ]
    assert [(folder / "checkpoints" / "x").read_text() for folder in folders] == ["one", "two"]
    assert names_in_opt() == opt_before


def as_nobody(*command: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        user=65534,
        group=65534,
        extra_groups=[],
        cwd="/",
    )


def python_for_nobody() -> str:
    """An interpreter in root's home is closed to other users."""
    for folder in (*os.environ["PATH"].split(os.pathsep), "/usr/local/bin", "/usr/bin"):
        python = Path(folder, "python3")
        if python.exists():
            with contextlib.suppress(PermissionError):
                if as_nobody(str(python), "-c", "").returncode == 0:
                    return str(python)
    raise AssertionError("no python3 on the PATH that a user without rights may run")


@pytest.mark.skipif(
    not NAMESPACES or os.geteuid() != 0, reason="needs root to become another user, and namespaces"
)
def test_a_user_without_rights_gets_the_view_too_and_stays_the_same_user(tmp_path: Path) -> None:
    home = tmp_path / "home"
    folder = home / "ml"
    folder.mkdir(parents=True)
    os.chown(home, 65534, 65534)
    for parent in (tmp_path, *tmp_path.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o055)
    (folder / "here").touch()
    command = with_own_opt_ml(folder, ["/bin/sh", "-c", "ls /opt/ml; id -u; ls /opt"])
    answer = as_nobody(python_for_nobody(), *command[1:])
    assert answer.stdout.split()[:2] == ["here", "65534"], answer
    assert set(answer.stdout.split()[2:]) == {*names_in_opt(), "ml"}


def test_without_a_view_the_command_runs_and_the_log_tells_of_the_shared_folder(
    tmp_path: Path,
) -> None:
    command = with_own_opt_ml(tmp_path / "missing", ["/bin/echo", "ran"])
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    said, ran = answer.stdout.splitlines()
    assert said.startswith("/opt/ml is shared by all jobs of this machine")
    assert "read paths from the SM_* variables" in said
    assert ran == "ran"
