"""Many runs in shared jobs on spot instances, under faults of every kind, with functions and the
service killed.

There are 36 of them, or in ``make nightly`` 1,000 in 12 jobs. An oracle recomputes everything from
raw records.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.local.chaos_lab import ENDED, FAULTS, ChaosLab, counted, killed_functions, suite_document
from tests.local.oracle import Evidence, find_strays, gather
from tests.local.shared_oracle import check_shared, count_ends, shared_jobs
from tests.nightly import NIGHTLY

pytestmark = [pytest.mark.local, pytest.mark.timeout(7200), pytest.mark.nightly]
NAME = "carried"
LANES = (
    "ml.g4dn.4xlarge",
    "ml.g5.24xlarge",
    "ml.g6.24xlarge",
)  # no other test uses them, because they count jobs
TRIALS = 2
RUNS = 1000 if NIGHTLY else 36
CELLS_PER_LANE = -(-RUNS // (len(LANES) * TRIALS))
THROTTLED_SHARE = 0.1
SEED = 7
# What a job may be billed for beyond its limit, 960 s, outlasts a restart of the service.
PACE = ("--speed-up", "30")
SHARED_FAULTS = {
    **FAULTS,
    "internal_error_fraction": 0.1,
    "killed_process_fraction": 0.05,
    "spot_interruption_fraction": 0.2,
    "lost_event_fraction": 0.1,
}


def shared_suite() -> dict[str, Any]:
    """A job of more than ten runs reaches its limit, so that the next attempt carries on."""
    measurement = {"trials": TRIALS, "max_steps": 10, "checkpoint_every_steps": 2, "jobs": "shared"}
    return {
        **suite_document(LANES, CELLS_PER_LANE, 600),
        "purchase": "spot",
        "measurement": measurement,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """The end of an execution under chaos.

    ``killed`` counts workers of functions and the processes that fork them; ``ends`` maps each run
    to the number of jobs in which it has ended.
    """

    status: str
    evidence: Evidence
    receipt: dict[str, Any]
    ends: Counter[str]
    killed: Counter[str]


@pytest.fixture(scope="module")
def aftermath(chaos: ChaosLab) -> Iterator[Aftermath]:
    chaos.kill_and_restart_sagemaker(*PACE)
    chaos.administer("/_local/faults", SHARED_FAULTS)
    chaos.throttle(THROTTLED_SHARE, SEED)
    try:
        yield wreak(chaos)
    finally:
        chaos.throttle(0.0, SEED)
        chaos.administer("/_local/faults", {})
        chaos.kill_and_restart_sagemaker()


def wreak(chaos: ChaosLab) -> Aftermath:
    with killed_functions(chaos, SEED) as killed:
        chaos.start(chaos.lab.write_suite(NAME, shared_suite()), NAME)
        chaos.until_swept(
            lambda: (
                is_over(chaos) or counted(chaos, *LANES, has_ended=True) > len(LANES) * TRIALS // 3
            ),
            600,
        )
        chaos.kill_and_restart_sagemaker(*PACE)
        chaos.until_swept(lambda: is_over(chaos), 5400)
    return Aftermath(
        status=status_of(chaos),
        evidence=gather(chaos, NAME),
        receipt=chaos.document("report", NAME, "--receipt")["receipt"],
        ends=count_ends(chaos, NAME),
        killed=killed,
    )


def is_over(chaos: ChaosLab) -> bool:
    return chaos.execution_status(NAME) in ENDED


def status_of(chaos: ChaosLab) -> str:
    """With its error, if it has one."""
    execution = chaos.client("stepfunctions").describe_execution(
        executionArn=chaos.execution_arn(NAME)
    )
    return " ".join(execution[name] for name in ("status", "error", "cause") if execution.get(name))


def test_every_run_has_one_result_and_every_job_is_paid_once_to_the_cent(
    aftermath: Aftermath,
) -> None:
    assert aftermath.status == "SUCCEEDED"
    assert len(aftermath.evidence.results(NAME)) == CELLS_PER_LANE * len(LANES) * TRIALS >= RUNS
    wrong = check_shared(aftermath.evidence, NAME, aftermath.receipt, aftermath.ends)
    assert not wrong, "\n".join(wrong)


def test_the_faults_have_struck(aftermath: Aftermath) -> None:
    jobs = shared_jobs(aftermath.evidence, NAME)
    assert len(jobs) >= len(LANES) * TRIALS
    statuses = Counter(
        aftermath.evidence.ledger[name]["status"] for names in jobs.values() for name in names
    )
    assert statuses.total() > len(jobs)
    assert statuses["Failed"] > 0
    assert aftermath.killed["workers"] >= 5, aftermath.killed
    assert aftermath.killed["servers"] >= 1, aftermath.killed


def test_most_runs_complete(aftermath: Aftermath) -> None:
    outcomes = Counter(result["outcome"] for result in aftermath.evidence.results(NAME).values())
    assert outcomes["completed"] > 0.6 * outcomes.total()


def test_every_job_is_known_and_has_ended(aftermath: Aftermath) -> None:
    ledger = {
        name: row
        for name, row in aftermath.evidence.ledger.items()
        if row["instance_type"] in LANES
    }
    assert all(row["has_ended"] for row in ledger.values())
    assert not {*find_strays(aftermath.evidence)} & ledger.keys()
