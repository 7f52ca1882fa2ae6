"""A cell that slows down after the end of its trials: the two long runs of ``confirm`` show it."""

import json

import pytest

from tests.local.local_lab import LocalLab

pytestmark = pytest.mark.local

TRIAL_STEPS, HOT_AFTER_STEPS = 40, 60
SCRIPT = f"""
import sys, time
from traindyno.callbacks import step_log
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
for number in range(int(given["--steps"])):
    with step_log.step(samples=8):
        is_hot = given["--cell"] == "throttles" and number > {HOT_AFTER_STEPS}
        time.sleep(0.06 if is_hot else 0.005 if given["--cell"] == "throttles" else 0.015)
"""


def test_the_long_runs_of_the_leaders_decide(lab: LocalLab) -> None:
    document = {
        "goal": "fastest",
        "search": "grid",
        "workload": {
            "task": "script",
            "source": lab.write_script("throttling_script", SCRIPT),
            "entry_point": "train.py",
            "hyperparameters": {"steps": TRIAL_STEPS},
            "examples": 1_000_000,
        },
        "training": {"instance": "local.cpu", "strategy": "single"},
        "matrix": {"hyperparameters.cell": ["throttles", "steady"]},
        "measurement": {"trials": 2},
        "confirm": {"minutes": 0.05, "argument": "steps"},
        "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 300},
    }
    suite = lab.write_suite("throttling", document)
    planned = lab.traindyno("plan", str(suite), "--local")
    assert "the two leading cells once more, 0.05 min each" in planned.output
    answer = lab.traindyno("run", str(suite), "--local", "--name", "throttling-1", "--format", "json")
    assert answer.status == 0, answer.errors
    verdict = json.loads(answer.output)["verdict"]
    rows = {row["label"]: row for row in verdict["rows"]}
    assert rows["cell steady"]["cell_id"] == verdict["recommended"]
    assert all(row["outcomes"] == {"completed": 3} for row in rows.values())
    report = lab.traindyno("report", "throttling-1", "--local").output
    assert "Its figures are those of a run of" in report
