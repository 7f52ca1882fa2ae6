"""A local cloud whose parts are killed, started twice, asked by web pages, and stopped."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from localcloud import cloud
from tests.local.forked_programs import REPO_ROOT
from tests.local.jobs import eventually
from tests.local.local_lab import LocalLab, script_suite, started_lab

pytestmark = [pytest.mark.local, pytest.mark.nightly]
MARK_TABLE = "kept-over-a-kill"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLab]:
    """A cloud of this module, because its parts are killed."""
    with started_lab(tmp_path_factory.mktemp("own")) as lab:
        yield lab


def process_of(lab: LocalLab, part: str) -> psutil.Process:
    daemon = lab.home.read_daemon(part)
    assert daemon is not None
    return psutil.Process(daemon.process_id)


def kill(lab: LocalLab, part: str) -> None:
    process = process_of(lab, part)
    os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE, 10)


def test_up_restarts_an_ended_service_and_stop_needs_ministack_only(own: LocalLab) -> None:
    healthy = process_of(own, cloud.MINISTACK).pid
    kill(own, cloud.SAGEMAKER)
    assert cloud.find_stall(own.home) is not None
    own.succeed("list", "--local")
    unknown = own.traindyno("stop", "never-started", "--local")
    assert "has no execution" in unknown.errors
    plan = own.traindyno("plan", str(REPO_ROOT / "suites" / "quickstart.yaml"), "--local")
    assert plan.status == 1
    assert "the local SageMaker service of the local cloud in" in plan.errors
    up = own.succeed("local", "up")
    assert "nothing to deploy" in up.errors
    assert process_of(own, cloud.MINISTACK).pid == healthy
    assert cloud.find_stall(own.home) is None


def test_a_running_local_cloud_takes_no_other_settings(own: LocalLab, tmp_path: Path) -> None:
    prices = tmp_path / "prices.json"
    prices.write_text('{"ml.p4d.24xlarge": "37.69"}')
    refused = own.traindyno("local", "up", "--grant-quotas", "16", "--prices", str(prices))
    assert refused.status == 1, refused.errors
    assert f"not --grant-quotas 16 --prices {prices}; first run: traindyno local down" in (
        refused.errors.replace("\n", " ")
    )


def test_a_start_of_ministack_removes_the_unpacked_code_of_the_last_one(
    own: LocalLab,
) -> None:
    unpacked = own.home.state("tmp") / "ministack-lambda-code-of-before" / "traindyno"
    unpacked.mkdir(parents=True)
    kill(own, cloud.MINISTACK)
    own.succeed("local", "up")
    assert not unpacked.parent.exists()


def create_saved_table(lab: LocalLab) -> None:
    lab.client("dynamodb").create_table(
        TableName=MARK_TABLE,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
    )
    saved = lab.home.state("ministack-state") / "dynamodb.json"
    eventually(
        lambda: saved.exists() and MARK_TABLE in saved.read_text(), 30
    )  # though nothing else goes on


def test_a_change_is_saved_though_no_other_follows(tmp_path: Path) -> None:
    lab = LocalLab(tmp_path)
    try:
        cloud.start(lab.home, tell=lambda _: None)
        create_saved_table(lab)
        assert MARK_TABLE in (lab.home.state("ministack-state") / "dynamodb.json").read_text()
    finally:
        cloud.stop(lab.home)


def test_saved_writes_outlive_a_kill_of_ministack(own: LocalLab) -> None:
    create_saved_table(own)
    kill(own, cloud.MINISTACK)
    own.succeed("local", "up")
    assert MARK_TABLE in own.client("dynamodb").list_tables()["TableNames"]


def test_a_cloud_without_its_deployment_says_how_to_start_anew(own: LocalLab) -> None:
    kill(own, cloud.MINISTACK)
    stacks = own.home.state(cloud.MINISTACK_STATE) / "cloudformation.json"
    kept = stacks.read_bytes()
    stacks.unlink()
    up = own.traindyno("local", "up")
    assert up.status == 1
    assert "has lost what was deployed into it" in up.errors
    assert "local down --erase" in " ".join(up.errors.split())
    kill(own, cloud.MINISTACK)
    stacks.write_bytes(kept)
    own.succeed("local", "up")


def begin(lab: LocalLab, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "traindyno", *arguments]
    environment = {
        **os.environ,
        "TRAINDYNO_HOME": str(lab.home.folder),
        "PYTHONPATH": str(REPO_ROOT),
    }
    return subprocess.Popen(
        command, cwd=lab.folder, env=environment, stderr=subprocess.PIPE, text=True
    )


def test_a_second_up_waits_for_the_first_and_finds_nothing_to_do(own: LocalLab) -> None:
    kill(own, cloud.MINISTACK)
    both = [begin(own, "local", "up") for _ in range(2)]
    told = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    assert sum("starting MiniStack" in text for text in told) == 1
    assert sum("waiting for process" in text for text in told) == 1


def test_both_parts_listen_on_loopback_only(own: LocalLab) -> None:
    for part in (cloud.MINISTACK, cloud.SAGEMAKER):
        listening = [
            connection.laddr.ip
            for connection in process_of(own, part).net_connections()
            if connection.status == "LISTEN"
        ]
        assert set(listening) == {"127.0.0.1"}


def start_sleeping(own: LocalLab, name: str) -> None:
    source = own.write_script("sleeping", "import time\ntime.sleep(600)\n")
    suite = script_suite(source, {"hyperparameters.x": [0]}, measurement={"trials": 1})
    path = own.write_suite("sleeping", suite)
    own.succeed("run", str(path), "--local", "--no-wait", "--name", name)


def test_down_names_running_work_and_asks_and_up_names_ended_parts(own: LocalLab) -> None:
    start_sleeping(own, "sleeping-1")
    refused = own.traindyno("local", "down")
    assert refused.status == 1
    assert "would end as failed: sleeping-1" in refused.errors
    assert "the option --yes" in refused.errors
    assert cloud.find_stall(own.home) is None
    own.succeed("local", "down", "--yes")
    up = own.succeed("local", "up")
    assert "execution sleeping-1 was running and has failed" in up.errors
    assert "its receipt may lack the jobs of its last seconds" in up.errors
    own.succeed("report", "--receipt", "sleeping-1", "--local")


def test_executions_of_a_killed_ministack_fail_and_their_jobs_end(own: LocalLab) -> None:
    start_sleeping(own, "sleeping-2")
    sagemaker = own.client("sagemaker")

    def jobs() -> list[str]:
        summaries = sagemaker.list_training_jobs(NameContains="sleeping")["TrainingJobSummaries"]
        return [
            job["TrainingJobName"] for job in summaries if job["TrainingJobStatus"] == "InProgress"
        ]

    eventually(jobs)
    cloud.save_state(own.home, cloud.require_ports(own.home))
    kill(own, cloud.MINISTACK)
    up = own.succeed("local", "up")
    assert (
        "MiniStack has ended, and its executions with it: processes of their jobs are stopped"
        in up.errors
    )
    assert "execution sleeping-2 was running and has failed" in up.errors
    assert jobs() == []
    assert (
        "sleeping-2: failed: States.ServiceRestart"
        in own.traindyno("report", "sleeping-2", "--local").errors
    )


def test_down_waits_for_an_up(own: LocalLab) -> None:
    told: list[str] = []
    with own.home.alone(tell=told.append):
        down = begin(own, "local", "down")
        assert down.stderr is not None
        assert f"waiting for process {os.getpid()}" in down.stderr.readline()
        assert cloud.status(own.home).ministack
    assert down.communicate(timeout=60)[1].strip() == "the local cloud is stopped"
    own.succeed("local", "up")


def test_down_takes_five_seconds_at_most(own: LocalLab) -> None:
    """This test runs last, because it ends the cloud.

    The process that started the cloud still runs and never waits for it.
    """
    began = time.monotonic()
    own.succeed("local", "down")
    assert time.monotonic() - began < 5
    assert not cloud.status(own.home).ministack
