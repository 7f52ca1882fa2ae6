"""A user's script, from the command line to the report: ends that are doubtful."""

import pytest

from tests.local.local_lab import LocalLab, script_suite

pytestmark = pytest.mark.local

SCRIPT = """
import os, sys, time, traceback
from traindyno.callbacks import step_log
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
try:
    for number in range(40):
        with step_log.step(samples=8):
            time.sleep(0.01)
    if given["--ends"] == "caught":
        raise OSError(28, "No space left on device", "/opt/ml/checkpoints/242000")
except OSError:
    traceback.print_exc()
    sys.exit(0)
os._exit(0)
"""
CAUTIONS = (
    (
        "its log ends in a traceback, although it exited with status 0: OSError: [Errno 28] No "
        "space left on device"
    ),
    "the process of rank 0 exited with status 0 without closing its step log",
)


def test_a_caught_error_and_a_hard_exit_are_cautions(lab: LocalLab) -> None:
    source = lab.write_script("doubtful_script", SCRIPT)
    answer = lab.run_suite(
        "doubtful", script_suite(source, {"hyperparameters.ends": ["caught", "os_exit"]})
    )
    for said in CAUTIONS:
        assert said in answer.errors
        assert said in lab.traindyno("report", "doubtful", "--local").output
