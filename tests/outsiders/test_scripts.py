"""People's scripts give the right step log, or fail with the exact message; none of them loses its
run.
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.outsiders.scripts import CASES, IMPORT, ScriptCase
from traindyno.core.step_log.content import Session, StepLog
from traindyno.core.step_log.reader import read_step_log

REPO_ROOT = Path(__file__).parents[2]
OWN_PHASES = ("launch", "import", "setup", "teardown")


def run(
    folder: Path, source: str, environment: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(IMPORT + source)
    inherited = {
        name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE")
    }
    return subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        env={
            **inherited,
            "PYTHONPATH": str(REPO_ROOT),
            "TRAINDYNO_STEP_LOG_DIRECTORY": str(folder / "step_log"),
            "SM_OUTPUT_DIR": str(folder),
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )


def logged(folder: Path) -> tuple[StepLog, Session]:
    files = (folder / "step_log").glob("*/rank-*.jsonl")
    log = read_step_log({f"job/{path.name}": path.read_text().splitlines() for path in files})
    (session,) = log.sessions
    return log, session


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_script_is_measured_or_gets_its_problem_named(case: ScriptCase, tmp_path: Path) -> None:
    ended = run(tmp_path, case.source, case.environment)
    assert ended.returncode == case.exit_code, ended.stdout
    assert case.said in ended.stdout
    log, session = logged(tmp_path)
    (process,) = session.processes
    assert [step.samples for step in process.steps] == list(case.samples)
    assert [phase.name for phase in process.phases if phase.name not in OWN_PHASES] == list(
        case.phases
    )
    assert process.is_ended == case.is_ended
    assert [error.outcome for error in log.errors] == (
        [] if case.outcome is None else [case.outcome]
    )
    assert case.message in "".join(error.message for error in log.errors)


def test_a_log_of_the_first_rank_alone_asks_for_a_log_of_every_process(tmp_path: Path) -> None:
    run(tmp_path, CASES["only the first of two ranks"].source, {"RANK": "0", "WORLD_SIZE": "2"})
    log, _ = logged(tmp_path)
    assert log.problems == (
        "job job: no log of rank 1 (world size 2); every process must log its own steps, because "
        "the work of all is counted",
    )
