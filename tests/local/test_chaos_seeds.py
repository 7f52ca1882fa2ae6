"""Faults of every kind at once, seed by seed, checked by an oracle that recomputes everything from raw records.

In each seed, three executions run at once under lost, late and repeated events, shortages and throttling of every API,
one of them at a tight cap with warm pools, and the service is killed. Then an execution is aborted and one is stopped
while their jobs run. At last MiniStack is killed during another one. There is one seed with 36 runs,
or in ``make nightly`` five with 200.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config

from localcloud import cloud, deployment
from localcloud.home import Restarted
from localcloud.loopback import is_taken
from tests.local.chaos_lab import CONTEXT, SLOW_LANE, WAIT_SCALE, WARM_LANE, ChaosLab, chaos_lab, until
from tests.local.local_lab import LocalLab
from tests.local.oracle import Evidence, check_ended, check_finished, check_paid, find_strays, gather
from tests.local.recorded_calls import check_calls, writing_calls
from tests.local.small_disk import full_disk, is_small_disk, small_disk
from tests.local.test_chaos import ENDED, FAULTS, LANES, TRIALS, counted, suite_document
from tests.nightly import NIGHTLY
from traindyno.api.lab_target import LabTarget
from traindyno.aws.executions import Executions
from traindyno.aws.log_tail import LogTail
from traindyno.aws.table import Table
from traindyno.aws.task_answers import TaskAnswers
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.cli.inputs.local_restart import settle_restart
from traindyno.lab.services import LabServices
from traindyno.store.results_bucket import ResultsBucket

pytestmark = [pytest.mark.local, pytest.mark.nightly, pytest.mark.timeout(3600)]
SEEDS = (1, 2, 3, 4, 5) if NIGHTLY else (1,)
RUNS = 200 if NIGHTLY else 36
CELLS_PER_LANE = -(-RUNS // (len(LANES) * TRIALS))
SMALL_CELLS = 2
# Of the requests to every API, MiniStack's too. With 0.3, a seed takes three times as long as with 0.03.
THROTTLED_SHARE = 0.3 if NIGHTLY else 0.03
# There is room for one or two jobs at once, which may run for 600 s and keep their instances for 60 s.
CAPPED_LIMITS = {"max_usd": 3, "max_hours": 100, "max_job_seconds": 600, "max_attempts": 12}
KEEP_SECONDS = 60
ENDING = ("main", "second", "capped")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosLab]:
    """A cloud of this module, on a disk of its own if this machine allows one."""
    calls = Path(tmp_path_factory.mktemp("calls"))  # no test fills the disk of this folder
    disk = Path(tmp_path_factory.mktemp("seeds"))
    with small_disk(disk) as folder, writing_calls(calls), chaos_lab(folder) as started:
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
    struck_text: str


@pytest.fixture(scope="module", params=SEEDS)
def aftermath(request: pytest.FixtureRequest, lab: ChaosLab) -> Iterator[Aftermath]:
    seed = int(request.param)
    lab.administer("/_local/faults", {**FAULTS, "seed": seed, "throttling_fraction": max(THROTTLED_SHARE, 0.1)})
    lab.throttle(THROTTLED_SHARE, seed)
    yield wreak(lab, seed)
    lab.throttle(0.0, seed)


def wreak(lab: ChaosLab, seed: int) -> Aftermath:
    names = {role: f"{role}-{seed}" for role in (*ENDING, "aborted", "stopped", "struck")}
    before = counted(lab, *LANES, has_ended=True)
    start(lab, names["main"], LANES, CELLS_PER_LANE, 3600)
    start(lab, names["second"], LANES[:1], SMALL_CELLS, 3600)
    lab.start(lab.lab.write_suite(names["capped"], capped_document()), names["capped"])
    until(lambda: counted(lab, *LANES, has_ended=True) > before + RUNS // 3, 300)
    lab.kill_and_restart_sagemaker()
    in_flight = {role: start_slow(lab, names[role]) for role in ("aborted", "stopped")}
    lab.client("stepfunctions").stop_execution(executionArn=lab.execution_arn(names["aborted"]))
    lab.command("stop", names["stopped"], "--local")
    lab.until_swept(lambda: all(lab.execution_status(names[role]) in ENDED for role in ENDING), 3000)
    lab.until_swept(lambda: counted(lab, SLOW_LANE, has_ended=False) == 0, 120)
    receipts = {role: lab.document("report", names[role], "--receipt")["receipt"] for role in ENDING}
    strays_before_kill = {*find_strays(gather(lab))}
    in_flight["struck"] = start_slow(lab, names["struck"])
    struck_text = strike(lab)
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
        struck_text=struck_text,
    )


def start(lab: ChaosLab, name: str, lanes: tuple[str, ...], cells: int, max_job_seconds: int) -> None:
    lab.start(lab.lab.write_suite(name, suite_document(lanes, cells, max_job_seconds)), name)


def capped_document() -> dict[str, Any]:
    document = suite_document((WARM_LANE,), max(SMALL_CELLS, CELLS_PER_LANE // 2), 600)
    return {**document, "limits": CAPPED_LIMITS, "warm_pool_seconds": KEEP_SECONDS}


def start_slow(lab: ChaosLab, name: str) -> int:
    """Starts an execution whose jobs end by faults only, waits until some are in flight, and returns their number."""
    before = counted(lab, SLOW_LANE, has_ended=False)
    start(lab, name, (SLOW_LANE,), 2, 400_000)
    counts = [0]  # a fault may end the job before another look

    def has_some() -> bool:
        counts.append(counted(lab, SLOW_LANE, has_ended=False) - before)
        return counts[-1] > 0

    until(has_some, 120)
    return counts[-1]


def strike(lab: ChaosLab) -> str:
    """Kills MiniStack and starts it as ``traindyno local up`` does; nothing else is started or deployed.

    Its last seconds of rows are lost. Returns what ``up`` tells about the executions that ended.
    """
    daemon = lab.home.read_daemon(cloud.MINISTACK)
    assert daemon is not None
    os.kill(daemon.process_id, signal.SIGKILL)
    # Its last threads may end later, and with them its port.
    until(lambda: not cloud.status(lab.home).ministack and not is_taken(daemon.port), 30, 0.1)
    told: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        for name, value in WAIT_SCALE.items():
            patch.setenv(name, value)
        ports = cloud.start(lab.home, tell=told.append)
    assert not deployment.deploy(lab.home, ports, tell=told.append, context=CONTEXT)
    assert told == [f"starting MiniStack on 127.0.0.1:{ports.aws}"]
    restarted = lab.home.read_as(cloud.RESTARTED, Restarted)
    assert restarted is not None
    target, deploying = target_of(lab.lab)
    assert settle_restart(target, deploying, since=restarted.at, tell=told.append)
    lab.home.forget(cloud.RESTARTED)
    return "\n".join(told[1:])


def target_of(lab: LocalLab) -> tuple[LabTarget, Executions]:
    """The lab as the command line sees it, and its deployments of models."""
    found, patient = lab.deployment(), Config(retries={"mode": "standard", "total_max_attempts": 11})
    services = LabServices(table=Table(lab.table()), bucket=ResultsBucket(lab.client("s3"), found.bucket))
    services.jobs = TrainingJobs(lab.client("sagemaker", patient))
    services.answers = TaskAnswers(lab.client("stepfunctions"))
    services.log_tail = LogTail(lab.client("logs"))
    suites, deploying = (
        Executions(lab.client("stepfunctions"), arn) for arn in (found.state_machine_arn, found.deployments_arn)
    )
    return LabTarget(is_local=True, deployment=found, executions=suites, services=services), deploying


def test_the_executions_succeed_and_their_books_agree_to_the_second_and_the_cent(aftermath: Aftermath) -> None:
    runs = int(aftermath.evidence.suite(f"main-{aftermath.seed}")["run_count"])
    assert runs == CELLS_PER_LANE * len(LANES) * TRIALS >= RUNS
    problems = {}
    for role in ENDING:
        assert aftermath.statuses[role] == "SUCCEEDED"
        problems[role] = check_finished(aftermath.evidence, f"{role}-{aftermath.seed}", aftermath.receipts[role])
    assert problems == {role: [] for role in ENDING}


@pytest.mark.parametrize("role", ["aborted", "stopped", "struck"])
def test_no_job_outlives_an_execution_that_was_ended(aftermath: Aftermath, role: str) -> None:
    assert aftermath.in_flight[role] > 0
    assert aftermath.statuses[role] in ({"FAILED", "UNKNOWN"} if role == "struck" else {"ABORTED", "FAILED"})
    name = f"{role}-{aftermath.seed}"
    assert check_ended(aftermath.evidence, name) == []
    # Each would have completed without the faults.
    ledger = aftermath.evidence.ledger
    statuses = {ledger[job]["status"] for job in aftermath.evidence.attempts(name) if job in ledger}
    assert statuses <= {"Stopped", "Failed"}


def test_a_kill_of_ministack_loses_no_money_and_up_names_what_it_ended(aftermath: Aftermath) -> None:
    name = f"struck-{aftermath.seed}"
    assert check_paid(aftermath.evidence, name, aftermath.receipts["struck"]) == []
    assert len(aftermath.receipts["struck"]["lines"]) >= aftermath.in_flight["struck"] > 0
    assert f"execution {name}: was running and has ended" in aftermath.struck_text
    assert f"start it again with: traindyno run {name}.yaml --local" in aftermath.struck_text


def test_most_runs_complete_and_say_that_they_are_simulated(aftermath: Aftermath) -> None:
    """The other runs ran out of memory, as the faults ask: these two executions have room under their caps."""
    names = [f"{role}-{aftermath.seed}" for role in ("main", "second")]
    results = [result for name in names for result in aftermath.evidence.results(name).values()]
    assert Counter(result["outcome"] for result in results)["completed"] > 0.8 * len(results)
    assert all(result["is_simulated"] for result in results if result["outcome"] == "completed")


def test_every_job_is_known_to_the_table_and_has_ended(aftermath: Aftermath) -> None:
    assert (aftermath.strays_before_kill, aftermath.strays, aftermath.not_ended) == (set(), set(), set())


def test_a_full_disk_is_told_and_what_comes_after_it_works(aftermath: Aftermath, lab: ChaosLab) -> None:
    """This is the last test of a seed: its execution may fail, but its jobs may not wait for ever."""
    if not is_small_disk(lab.lab.folder):
        pytest.skip("this machine lets no disk be mounted")
    lab.throttle(0.0, 0)
    cramped, after = f"cramped-{aftermath.seed}", f"after-{aftermath.seed}"
    start_slow(lab, cramped)
    with full_disk(lab.lab.folder):
        until(lambda: lab.problem() is not None, 30, 0.2)
    until(lambda: lab.problem() is None, 60)
    stopped = lab.lab.traindyno("stop", cramped, "--local")
    assert stopped.status == 0, stopped.errors
    lab.until_swept(lambda: counted(lab, SLOW_LANE, has_ended=False) == 0, 120)
    start(lab, after, LANES[:1], SMALL_CELLS, 3600)
    lab.until_swept(lambda: lab.execution_status(after) in ENDED, 300)
    assert lab.execution_status(after) == "SUCCEEDED"
    assert check_finished(gather(lab, after), after, lab.document("report", after, "--receipt")["receipt"]) == []
