"""Faults of every kind at once, seed by seed, checked by an oracle that recomputes everything from
raw records.

In each seed, three executions run at once under lost, late and repeated events, shortages and
throttling of every API, one of them at a tight cap, and the service is killed. Then an execution is
aborted and one is stopped while their jobs run. At last MiniStack is killed during another one,
after it has saved its state, with each of its jobs. There is one seed with 36 runs, or in ``make
nightly`` five with 200.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localcloud import cloud, deployment
from localcloud.ports import is_taken
from tests.local.chaos_lab import (
    CAPPED_LANE,
    CONTEXT,
    ENDED,
    FAULTS,
    LANES,
    SLOW_LANE,
    TRIALS,
    WAIT_SCALE,
    ChaosLab,
    chaos_lab,
    counted,
    suite_document,
)
from tests.local.jobs import eventually
from tests.local.oracle import (
    Evidence,
    check_ended,
    check_finished,
    check_paid,
    find_strays,
    gather,
)
from tests.local.recorded_calls import check_calls, writing_calls
from tests.nightly import NIGHTLY

pytestmark = [pytest.mark.local, pytest.mark.nightly, pytest.mark.timeout(3600)]
SEEDS = (1, 2, 3, 4, 5) if NIGHTLY else (1,)
RUNS = 200 if NIGHTLY else 36
CELLS_PER_LANE = -(-RUNS // (len(LANES) * TRIALS))
SMALL_CELLS = 2
# Of the requests to every API, MiniStack's too. With 0.3, a seed takes three times as long as with
# 0.03.
THROTTLED_SHARE = 0.3 if NIGHTLY else 0.03
# There is room for one or two jobs at once, which may run for 600 s and keep their instances for 60
# s.
CAPPED_LIMITS = {"max_usd": 3, "max_hours": 100, "max_job_seconds": 600, "max_attempts": 12}
ENDING = ("main", "second", "capped")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosLab]:
    """A cloud of this module."""
    calls = Path(tmp_path_factory.mktemp("calls"))
    with writing_calls(calls), chaos_lab(Path(tmp_path_factory.mktemp("seeds"))) as started:
        yield started
    check_calls(calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    seed: int
    statuses: dict[str, str]
    evidence: Evidence
    receipts: dict[str, Any]
    strays_before_kill: set[str]
    strays: set[str]
    not_ended: set[str]
    in_flight: dict[str, int]


@pytest.fixture(scope="module", params=SEEDS)
def aftermath(request: pytest.FixtureRequest, lab: ChaosLab) -> Iterator[Aftermath]:
    seed = int(request.param)
    lab.administer(
        "/_local/faults", {**FAULTS, "seed": seed, "throttling_fraction": max(THROTTLED_SHARE, 0.1)}
    )
    lab.throttle(THROTTLED_SHARE, seed)
    yield wreak(lab, seed)
    lab.throttle(0.0, seed)


def wreak(lab: ChaosLab, seed: int) -> Aftermath:
    names = {role: f"{role}-{seed}" for role in (*ENDING, "aborted", "stopped", "struck")}
    before = counted(lab, *LANES, has_ended=True)
    start(lab, names["main"], LANES, CELLS_PER_LANE, 3600)
    start(lab, names["second"], LANES[:1], SMALL_CELLS, 3600)
    lab.start(lab.lab.write_suite(names["capped"], capped_document()), names["capped"])
    eventually(lambda: counted(lab, *LANES, has_ended=True) > before + RUNS // 3, 300, 1)
    lab.kill_and_restart_sagemaker()
    in_flight = {role: start_slow(lab, names[role]) for role in ("aborted", "stopped")}
    lab.client("stepfunctions").stop_execution(executionArn=lab.execution_arn(names["aborted"]))
    lab.command("stop", names["stopped"], "--local")
    lab.until_swept(
        lambda: all(lab.execution_status(names[role]) in ENDED for role in ENDING), 3000
    )
    lab.until_swept(lambda: counted(lab, SLOW_LANE, has_ended=False) == 0, 120)
    receipts = {
        role: lab.document("report", names[role], "--receipt")["receipt"] for role in ENDING
    }
    strays_before_kill = {*find_strays(gather(lab))}
    in_flight["struck"] = start_slow(lab, names["struck"])
    eventually(lambda: has_no_job_to_start(lab, names["struck"]), 300, 1)
    strike(lab)
    lab.throttle(THROTTLED_SHARE, seed)  # the new MiniStack has no faults
    lab.invoke("ReconcileRuns")
    lab.until_swept(lambda: counted(lab, SLOW_LANE, has_ended=False) == 0, 120)
    lab.until_swept(lambda: not check_ended(gather(lab), names["struck"]), 60)
    lab.invoke("ReconcileRuns")
    receipts["struck"] = lab.document("report", names["struck"], "--receipt")["receipt"]
    evidence = gather(lab, *(names[role] for role in ENDING))
    return Aftermath(
        seed=seed,
        statuses={role: lab.execution_status(name) for role, name in names.items()},
        evidence=evidence,
        receipts=receipts,
        strays_before_kill=strays_before_kill,
        strays={*find_strays(evidence)},
        not_ended={name for name, row in evidence.ledger.items() if not row["has_ended"]},
        in_flight=in_flight,
    )


def start(
    lab: ChaosLab, name: str, lanes: tuple[str, ...], cells: int, max_job_seconds: int
) -> None:
    lab.start(lab.lab.write_suite(name, suite_document(lanes, cells, max_job_seconds)), name)


def capped_document() -> dict[str, Any]:
    document = suite_document((CAPPED_LANE,), max(SMALL_CELLS, CELLS_PER_LANE // 2), 600)
    return {**document, "limits": CAPPED_LIMITS}


def start_slow(lab: ChaosLab, name: str) -> int:
    """Starts an execution whose jobs end by faults only, waits until some are in flight, and
    returns their number.
    """
    before = counted(lab, SLOW_LANE, has_ended=False)
    start(lab, name, (SLOW_LANE,), 2, 400_000)
    counts = [0]  # a fault may end the job before another look

    def has_some() -> bool:
        counts.append(counted(lab, SLOW_LANE, has_ended=False) - before)
        return counts[-1] > 0

    eventually(has_some, 120, 1)
    return counts[-1]


def has_no_job_to_start(lab: ChaosLab, name: str) -> bool:
    """Whether each run of the execution trains or has ended.

    The sweep can't know a job that starts between the save of MiniStack's state and its kill.
    """
    evidence = gather(lab)
    jobs = [evidence.ledger[job] for job in evidence.attempts(name) if job in evidence.ledger]
    training = [job for job in jobs if not job["has_ended"] and job["billed_seconds"] > 0]
    ended = [row for row in evidence.runs(name).values() if "summary" in row]
    return len(training) + len(ended) == int(evidence.suite(name)["run_count"])


def strike(lab: ChaosLab) -> None:
    """Kills MiniStack after a save and starts it as ``traindyno local up`` does; nothing is
    deployed.
    """
    daemon = lab.home.read_daemon(cloud.MINISTACK)
    assert daemon is not None
    cloud.save_state(lab.home, cloud.require_ports(lab.home))
    os.kill(daemon.process_id, signal.SIGKILL)
    # Its last threads may end later, and with them its port.
    eventually(lambda: not cloud.status(lab.home).ministack and not is_taken(daemon.port), 30, 0.1)
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAIT_SCALE.items():
            patch.setenv(name, value)
        ports = cloud.start(lab.home, tell=told.append)
    assert not deployment.deploy(lab.home, ports, tell=told.append, context=CONTEXT)
    assert told == [
        "MiniStack has ended, and its executions with it: processes of their jobs are stopped",
        f"starting MiniStack on 127.0.0.1:{ports.aws}",
        f"starting the local SageMaker service on 127.0.0.1:{ports.sagemaker}",
    ]


def test_the_executions_succeed_and_their_books_agree_to_the_second_and_the_cent(
    aftermath: Aftermath,
) -> None:
    runs = int(aftermath.evidence.suite(f"main-{aftermath.seed}")["run_count"])
    assert runs == CELLS_PER_LANE * len(LANES) * TRIALS >= RUNS
    problems = {}
    for role in ENDING:
        assert aftermath.statuses[role] == "SUCCEEDED"
        problems[role] = check_finished(
            aftermath.evidence, f"{role}-{aftermath.seed}", aftermath.receipts[role]
        )
    assert problems == {role: [] for role in ENDING}


@pytest.mark.parametrize("role", ["aborted", "stopped", "struck"])
def test_no_job_outlives_an_ended_execution(aftermath: Aftermath, role: str) -> None:
    assert aftermath.in_flight[role] > 0
    assert aftermath.statuses[role] in {"ABORTED", "FAILED"}
    name = f"{role}-{aftermath.seed}"
    assert check_ended(aftermath.evidence, name) == []
    # Each would have completed without the faults.
    ledger = aftermath.evidence.ledger
    statuses = {ledger[job]["status"] for job in aftermath.evidence.attempts(name) if job in ledger}
    assert statuses <= {"Stopped", "Failed"}


def test_saved_state_of_ministack_outlives_a_kill_and_the_jobs_have_ended(
    aftermath: Aftermath,
) -> None:
    name = f"struck-{aftermath.seed}"
    assert aftermath.statuses["struck"] == "FAILED"
    assert check_paid(aftermath.evidence, name, aftermath.receipts["struck"]) == []
    assert len(aftermath.receipts["struck"]["lines"]) >= aftermath.in_flight["struck"] > 0


def test_most_runs_complete_and_are_marked_as_simulated(aftermath: Aftermath) -> None:
    """The other runs ran out of memory, as the faults ask: these two executions have room under
    their caps.
    """
    names = [f"{role}-{aftermath.seed}" for role in ("main", "second")]
    results = [result for name in names for result in aftermath.evidence.results(name).values()]
    assert Counter(result["outcome"] for result in results)["completed"] > 0.8 * len(results)
    assert all(result["is_simulated"] for result in results if result["outcome"] == "completed")


def test_every_job_is_known_to_the_table_and_has_ended(aftermath: Aftermath) -> None:
    assert (aftermath.strays_before_kill, aftermath.strays, aftermath.not_ended) == (
        set(),
        set(),
        set(),
    )
