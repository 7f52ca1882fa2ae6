"""A home that can't be used is a message that says what to do, and two commands don't work on it at
once.
"""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from localcloud import cloud, daemons
from localcloud.home import Daemon, Home, HomeUnusable, Ports
from localcloud.ports import is_taken

PORTS = Ports(aws=1, sagemaker=2)


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_damaged_file_is_named_with_the_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "ports.json").write_text(text)
    with pytest.raises(
        HomeUnusable,
        match=r"ports\.json is damaged.* --erase, then start a new one with: traindyno local up",
    ):
        Home(tmp_path).read_as("ports", Ports)


def test_an_unwritable_home_names_the_variable_to_set(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    home = Home(tmp_path / "file")
    with pytest.raises(HomeUnusable, match="set TRAINDYNO_HOME"):
        home.write("ports", PORTS)
    with pytest.raises(HomeUnusable, match="set TRAINDYNO_HOME"):
        home.prepare_log("ministack")
    with pytest.raises(HomeUnusable, match="set TRAINDYNO_HOME"), home.alone(tell=lambda _: None):
        pass


def hold(folder: Path, seconds: float) -> None:
    with Home(folder).alone(tell=lambda _: None):
        (folder / "held").touch()
        time.sleep(seconds)
        (folder / "left").touch()


def test_a_second_command_names_the_first_and_waits_for_it(tmp_path: Path) -> None:
    first = multiprocessing.get_context("fork").Process(target=hold, args=(tmp_path, 0.5))
    first.start()
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    told: list[str] = []
    with Home(tmp_path).alone(tell=told.append):
        assert (tmp_path / "left").exists()
    first.join()
    assert told == [
        f"waiting for process {first.pid}, which starts or stops the local cloud in {tmp_path}"
    ]


def start_daemon(home: Home, name: str, command: list[str]) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(
        command,
        env={**os.environ, daemons.PART: f"{home.folder}:{name}:1"},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    # a process has no environment yet for a moment after it was started
    while not psutil.Process(process.pid).environ():
        time.sleep(0.01)
    return process


def test_a_daemon_is_known_after_the_clock_was_set_and_its_number_given_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system says of a process's start moves with the clock."""
    home = Home(tmp_path)
    process = start_daemon(home, "sleeper", ["sleep", "60"])
    home.write("sleeper", Daemon(process_id=process.pid, port=1))
    monkeypatch.setattr(psutil.Process, "create_time", lambda _: time.time() + 9)
    try:
        assert daemons.running(home, "sleeper") == Daemon(process_id=process.pid, port=1)
        assert daemons.running(Home(tmp_path / "other"), "sleeper") is None
        home.write("other", Daemon(process_id=process.pid, port=1))
        assert daemons.running(home, "other") is None
    finally:
        process.kill()
        process.wait()


def test_a_daemon_with_a_living_starter_is_stopped_at_once(tmp_path: Path) -> None:
    """The starter never waits for it, so it stays in the process table as a zombie."""
    home = Home(tmp_path)
    process = start_daemon(home, "sleeper", ["sleep", "60"])
    home.write("sleeper", Daemon(process_id=process.pid, port=1))
    began = time.monotonic()
    assert daemons.stop(home, "sleeper", seconds=60)
    assert time.monotonic() - began < 30
    assert daemons.running(home, "sleeper") is None
    process.wait()


def test_the_children_of_a_killed_daemon_are_ended_before_the_next_one_starts(
    tmp_path: Path,
) -> None:
    """They hold its port: the next daemon could not listen on it."""
    home = Home(tmp_path)
    listen = (
        "import socket, time; s = socket.create_server(('127.0.0.1', 0)); "
        "print(s.getsockname()[1], flush=True)"
    )
    fork = "os.set_inheritable(s.fileno(), True); os.fork() or print('forked', flush=True)"
    script = f"import os, time; {listen}; {fork}; time.sleep(60)"
    process = start_daemon(home, "parent", [sys.executable, "-c", script])
    assert process.stdout is not None
    port = int(process.stdout.readline())
    home.write("parent", Daemon(process_id=process.pid, port=port))
    assert process.stdout.readline() == b"forked\n"
    process.kill()
    process.wait()
    assert is_taken(port)
    daemons.end_leftovers(home, "parent")
    assert not is_taken(port)


def test_a_home_of_another_version_is_refused_with_the_command_removing_it(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.write(cloud.PORTS, PORTS)
    for use in (cloud.require_ports, lambda home: cloud.start(home, tell=print)):
        with pytest.raises(
            HomeUnusable, match=r"of another version: .* format-2; .* traindyno local down --erase$"
        ):
            use(home)
    cloud.erase(home)
    assert not home.folder.exists()
