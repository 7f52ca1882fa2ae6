"""What `traindyno run` says when it has started an execution."""

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from localcloud import disk_space
from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.planned_lab import empty_lab
from tests.unit.suites import small_suite
from traindyno.aws.executions import Execution
from traindyno.cli.commands.run_commands import finish, start_lines
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.cli.output import OutputFormat

SUITE = Path(__file__).parents[3] / "suites" / "own_script.yaml"


def test_a_suite_without_models_to_deploy_is_told_so_at_its_start() -> None:
    assert list(start_lines(small_suite(), "mine", " --local")) == [
        "started mine; stop it with: traindyno stop mine --local",
        "this execution will have no model to deploy: the suite keeps no model; add to it measurement: {save_model:"
        " true}, then run it again",
    ]


def test_a_suite_that_saves_its_models_gets_no_such_line() -> None:
    (line,) = start_lines(small_suite(measurement={"save_model": True}), "mine", "")
    assert line == "started mine; stop it with: traindyno stop mine"


def test_a_lab_without_a_network_is_said_to_serve_no_model() -> None:
    saving = small_suite(measurement={"save_model": True})
    _, line = start_lines(saving, "mine", "", isolated_lab="quiet")
    assert line.startswith("this execution will have no model to deploy: lab quiet has isolate_network=on")


def test_a_local_cloud_on_a_full_disk_starts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = empty_lab()
    target = target_of(lab)
    monkeypatch.setattr(LabChoice, "find_target", lambda _: target)
    monkeypatch.setenv("TRAINDYNO_HOME", str(tmp_path))
    monkeypatch.setattr(disk_space, "NEEDED_BYTES", 2**62)
    refused = CliRunner().invoke(commands, ["run", str(SUITE), "--local"])
    assert isinstance(refused.exception, disk_space.DiskFull)
    assert str(refused.exception).startswith(f"the disk of {tmp_path} has too little space, ")
    assert (lab.objects.contents, list(target.executions.list_latest(1))) == ({}, [])


@pytest.mark.parametrize(("error", "is_told"), [("Lambda.Unknown", True), ("PreparationFailed", False)])
def test_the_cause_of_a_failed_execution_is_told_in_each_case(
    error: str,
    is_told: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A preparation's script may fill a disk that is not the local cloud's."""
    monkeypatch.setenv("TRAINDYNO_HOME", str(tmp_path))
    cause = "[Errno 28] No space left on device: '/dev/shm/cache'"
    ended = Execution(execution_id="x", status="FAILED", started_at=1.0, ended_at=2.0, error=error, cause=cause)
    with pytest.raises(typer.Exit) as left:
        finish(target_of(empty_lab()), ended, OutputFormat.TABLE, tmp_path)
    said = " ".join(capsys.readouterr().err.split())
    assert left.value.exit_code == (1 if is_told else 2)
    assert said.endswith(cause)
    assert (f"the disk of {tmp_path} was full" in said) is is_told
