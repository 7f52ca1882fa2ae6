"""The commands of docs/models.md, as they are written there: plans of large models, and a rehearsal
on spot.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from localcloud.cloud import environment_of
from tests.local.forked_programs import REPO_ROOT, Answer
from tests.local.local_lab import LocalLab

pytestmark = [pytest.mark.local, pytest.mark.nightly]

PAGE = REPO_ROOT / "docs" / "models.md"
BLOCK = re.compile(
    r"<!-- commands: run by tests/local/test_large_models.py -->\n(.*?)<!-- end -->", re.DOTALL
)
SMALL = "suites/large_rehearsal.yaml"


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Answer]]:
    """The answer of each command of the page. All are run once, in their order."""
    lab = LocalLab(tmp_path_factory.mktemp("large"))
    (lab.folder / "suites").symlink_to(REPO_ROOT / "suites")
    by_command: dict[str, Answer] = {}
    try:
        for command in commands():
            by_command[command] = run(lab, command)
            assert " local up" not in command or by_command[command].status == 0, by_command[
                command
            ].errors
        yield by_command
    finally:
        lab.traindyno("local", "down", "--erase", "--yes")


def commands() -> list[str]:
    return [
        line.strip()
        for block in BLOCK.findall(PAGE.read_text())
        for line in block.splitlines()
        if line.strip()
    ]


def run(lab: LocalLab, command: str) -> Answer:
    if command.startswith("traindyno "):
        more = ["--format", "json"] if " plan " in command or " run " in command else []
        return lab.traindyno(*shlex.split(command)[1:], *more)
    environment = environment_of(lab.home)
    ran = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=environment,
    )
    return Answer(status=ran.returncode, output=ran.stdout, errors=ran.stderr)


def test_every_command_of_the_page_succeeds(answers: dict[str, Answer]) -> None:
    assert len(answers) == 6
    assert {command: answer.errors for command, answer in answers.items() if answer.status} == {}


def test_both_models_are_planned_over_three_kinds_of_accelerators_with_their_costs(
    answers: dict[str, Answer],
) -> None:
    plans = [answer.json() for command, answer in answers.items() if " plan " in command]
    assert len(plans) == 2
    for plan in plans:
        lanes = {lane["instance_type"]: lane for lane in plan["lanes"]}
        assert set(lanes) == {"ml.p4d.24xlarge", "ml.p5.48xlarge", "ml.trn2.48xlarge"}
        assert {lane["quota"]["applied"] for lane in lanes.values()} == {16}
        assert float(plan["one_attempt_usd"]) > 0


def test_the_rehearsal_ends_in_a_simulated_verdict_with_interrupted_jobs(
    answers: dict[str, Answer],
) -> None:
    (ran,) = [
        answer
        for command, answer in answers.items()
        if command.startswith(f"traindyno run {SMALL}")
    ]
    report = ran.json()
    verdict = report["verdict"]
    assert verdict["is_simulated"] is True
    assert verdict["recommended"] is not None
    assert [row["outcomes"] for row in verdict["rows"]] == [{"completed": 3}] * 9
    measured = {
        result["run"]["run_id"]: result["measured"]
        for result in report["results"]
        if result["measured"]
    }
    interrupted = [
        run_id for run_id, measured_run in measured.items() if measured_run["job"]["interruptions"]
    ]
    assert len(interrupted) >= 3, json.dumps(interrupted)
