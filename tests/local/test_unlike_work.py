"""Users' scripts, from the command line to the report: unlike work, and ends that are doubtful."""

from typing import Any

import pytest

from tests.local.forked_programs import Answer
from tests.local.local_lab import LocalLab

pytestmark = pytest.mark.local

SCRIPT = """
import os, sys, time, traceback
from traindyno.callbacks import step_log
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
packing, ends = given.get("--packing") == "True", given.get("--ends")
if packing:
    step_log.describe({"work_unit": "packed blocks of 8 tokens"})
try:
    for number in range(40):
        with step_log.step(samples=8):
            time.sleep(0.03 if packing else 0.01)
    if ends == "caught":
        raise OSError(28, "No space left on device", "/opt/ml/checkpoints/242000")
except OSError:
    traceback.print_exc()
    sys.exit(0)
if ends == "os_exit":
    os._exit(0)
"""


def ran(lab: LocalLab, name: str, search: str, matrix: dict[str, Any]) -> Answer:
    suite = lab.write_suite(
        name,
        {
            "goal": "fastest",
            "search": search,
            "workload": {
                "task": "script",
                "source": lab.write_script("unlike_script", SCRIPT),
                "entry_point": "train.py",
                "examples": 1000,
            },
            "training": {"instance": "local.cpu", "strategy": "single"},
            "matrix": matrix,
            "measurement": {"trials": 2},
            "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 300},
        },
    )
    answer = lab.traindyno("run", str(suite), "--local", "--name", f"{name}-1", "--format", "json")
    assert answer.status == 0, answer.errors
    return answer


@pytest.mark.parametrize("search", ["race", pytest.param("grid", marks=pytest.mark.nightly)])
def test_packed_blocks_of_a_script_are_not_compared_with_rows(lab: LocalLab, search: str) -> None:
    answer = ran(lab, f"unlike-{search}", search, {"hyperparameters.packing": ["False", "True"]})
    report = answer.json()
    headline = "No recommendation: packing counts other work (packed blocks of 8 tokens and samples)."
    assert (report["verdict"]["finding"], report["verdict"]["recommended"]) == ("unlike_work", None)
    assert headline in lab.traindyno("report", f"unlike-{search}-1", "--local").output
    # Blocks outpace no rows, and rows no blocks; a race ends after its first round.
    outcomes = [result["outcome"] for result in report["results"]]
    assert outcomes == ["completed"] * (2 if search == "race" else 4)


def test_a_caught_error_and_a_hard_exit_are_cautions(lab: LocalLab) -> None:
    answer = ran(lab, "doubtful", "grid", {"hyperparameters.ends": ["caught", "os_exit"]})
    caught = (
        "its log ends in a traceback, although it exited with status 0: OSError: [Errno 28] No space left on device"
    )
    exited = "the process of rank 0 exited with status 0 without closing its step log"
    for said in (caught, exited):
        assert said in answer.errors
        assert said in lab.traindyno("report", "doubtful-1", "--local").output
