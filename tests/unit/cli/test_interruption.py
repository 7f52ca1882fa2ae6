"""What a person reads who interrupts a command, and who can't write the report."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import typer
from botocore.exceptions import TokenRetrievalError

from tests.sentences import Snapshot
from tests.unit.store.samples import ROW
from traindyno.api.execution_state import State
from traindyno.api.progress import CloudUnreachable, observe
from traindyno.api.reports import ReportUnwritable, write_report
from traindyno.cli import main
from traindyno.cli.commands import run_commands
from traindyno.cli.commands.run_commands import follow_to_end
from traindyno.cli.lab_choice import LabChoice
from traindyno.store.attempts import AttemptRow

INTERRUPTS_AT_IMPORT = """
import sys

where, sys.argv = sys.argv[1], ["traindyno", "plan", "suites/lightning.yaml"]

class Interrupts:
    def find_spec(self, name, *_):
        if name == where:
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
from traindyno.cli.entry import app
app()
"""


class Target:
    """What interrupting uses of a target."""

    def __init__(self, *, is_local: bool, error: BaseException | None = None) -> None:
        self.is_local = is_local
        self.option = " --local" if is_local else ""
        self.services = self.attempts = self
        self._error = error

    def list_open(self, _: str) -> Iterator[AttemptRow]:
        if self._error:
            raise self._error
        for number in (1, 2):
            yield replace(
                ROW,
                job_name=f"job-{number}",
                number=number,
                instance_count=3,
                usd_per_hour=Decimal("6.20"),
            )


def interrupted(
    target: Target, monkeypatch: pytest.MonkeyPatch, number: int = signal.SIGINT
) -> list[str]:
    told: list[str] = []
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background job inherits that it is ignored

    def follow(*_: Any) -> None:
        os.kill(os.getpid(), number)
        time.sleep(10)

    monkeypatch.setattr(run_commands, "follow", follow)
    monkeypatch.setattr(run_commands, "tell", told.append)
    with pytest.raises(typer.Exit) as left:
        follow_to_end(target, "demo-1")  # type: ignore[arg-type]
    assert left.value.exit_code == 130
    return told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_names_the_commands_to_watch_and_to_stop(
    snapshot: Snapshot, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    snapshot(interrupted(Target(is_local=True), monkeypatch, number))
    assert signal.getsignal(signal.SIGTERM) == before


def test_interrupted_command_says_the_hourly_cost_of_running_jobs_on_aws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (line,) = interrupted(Target(is_local=False), monkeypatch)
    # 2 jobs × 3 instances × $6.20
    assert "2 training jobs running at $37.20 per hour" in line


@pytest.mark.parametrize(("is_local", "told"), [(True, 0), (False, 1)])
def test_a_session_that_expires_leaves_the_command_to_watch_again(
    is_local: bool, told: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The local cloud runs nothing any more where it can't be reached."""
    lines: list[str] = []

    def read() -> State:
        raise TokenRetrievalError(provider="sso", error_msg="Token has expired")

    monkeypatch.setattr(run_commands, "follow", lambda *_: next(observe(read, lambda: None, 0.0)))
    monkeypatch.setattr(run_commands, "tell", lines.append)
    with pytest.raises(CloudUnreachable, match="has expired; sign in again"):
        follow_to_end(Target(is_local=is_local), "demo-1")  # type: ignore[arg-type]
    assert len(lines) == told
    assert all("not demo-1; watch it again: traindyno watch demo-1" in line for line in lines)


def test_a_second_interruption_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert interrupted(Target(is_local=False, error=KeyboardInterrupt()), monkeypatch) == []


def test_an_unwritable_report_is_a_message_with_another_way(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("not a folder")
    with pytest.raises(ReportUnwritable, match=r"reports.*traindyno report demo-1 --output FOLDER"):
        write_report(tmp_path / "reports", "demo-1", b"html")
    assert write_report(tmp_path / "other", "demo-1", b"html").read_bytes() == b"html"


@pytest.mark.parametrize(
    "module",
    [
        "traindyno.cli.main",
        "botocore.exceptions",
        "traindyno.cli.commands",
        "traindyno.core.suite.suite",
    ],
)
def test_ctrl_c_while_the_command_loads_is_one_line(module: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTS_AT_IMPORT, module],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_ctrl_c_while_a_command_works_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(LabChoice, "find_target", interrupt)
    monkeypatch.setattr(sys, "argv", ["traindyno", "list"])
    with pytest.raises(SystemExit) as left:
        main.app()
    assert left.value.code == 130
    assert capsys.readouterr().err == "interrupted\n"
