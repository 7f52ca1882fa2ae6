"""A cell that slows down after the end of its trials: the two long runs of ``confirm`` show it."""

import pytest

from tests.local.local_lab import LocalLab, script_suite

pytestmark = pytest.mark.local

TRIAL_STEPS = 40
HOT_AFTER_STEPS = 60
SCRIPT = f"""
import sys, time
from traindyno.callbacks import step_log
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for number in range(int(given["--steps"])):
    with step_log.step(samples=8):
        is_hot = given["--cell"] == "throttles" and number > {HOT_AFTER_STEPS}
        time.sleep(0.06 if is_hot else 0.01 if given["--cell"] == "throttles" else 0.03)
"""


def test_the_long_runs_of_the_leaders_decide(lab: LocalLab) -> None:
    workload = {"hyperparameters": {"steps": TRIAL_STEPS}, "examples": 1_000_000}
    confirm = {"minutes": 0.05, "argument": "steps"}
    source = lab.write_script("throttling_script", SCRIPT)
    cells = {"hyperparameters.cell": ["throttles", "steady"]}
    document = script_suite(source, cells, workload=workload, confirm=confirm)
    planned = lab.traindyno("plan", str(lab.write_suite("throttling", document)), "--local")
    assert "the two leading cells once more, 0.05 min each" in planned.output
    verdict = lab.run_suite("throttling", document).json()["verdict"]
    rows = {row["label"]: row for row in verdict["rows"]}
    assert rows["cell steady"]["cell_id"] == verdict["recommended"]
    assert all(row["outcomes"] == {"completed": 3} for row in rows.values())
    report = " ".join(
        lab.traindyno("report", "throttling", "--local").output.split()
    )  # lines break anywhere
    assert "Its figures are those of a run of" in report, report
