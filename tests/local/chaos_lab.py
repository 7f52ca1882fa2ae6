"""A local cloud for rehearsals: every job is simulated, several runs go at once, and retries wait
only a short time.
"""

import json
import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from botocore.config import Config

from localcloud import cloud, deployment
from localcloud.environment import read_access_key
from localcloud.home import Home
from tests.local.forked_programs import Answer
from tests.local.jobs import eventually
from tests.local.local_lab import LocalLab
from tests.local.running_service import administer
from traindyno.aws.deployment import Deployment, find_deployment
from traindyno.core.errors import Throttled
from traindyno.core.lab_names import DEFAULT_LAB

# The clock must not jump here, so that jobs still run when the abort comes.
OPTIONS = (
    "--simulate-all",
    "--grant-quotas",
    "1000",
    "--speed-up",
    "150",
    "--jump-when-quiet-seconds",
    "4320",
)
CONTEXT = {"lanes_at_once": "4", "lane_concurrency": "8"}
SLOW_LANE = "ml.g5.xlarge"
OVERRUNNING_LANE = "ml.g4dn.2xlarge"
CAPPED_LANE = "ml.g6.12xlarge"
QUICK = {"step_seconds": 2, "steps": 10, "load_seconds": 10}
# A job takes 5 s, 5 s and 140 steps of 10 s, beyond the 1,200 s that one of 240 s may be billed
# for.
OVERRUNNING_LIMIT_SECONDS = 240
TRACES: dict[str, dict[str, Any]] = {
    "quick": QUICK,
    "slow": {**QUICK, "match": {"instance_type": SLOW_LANE}, "step_seconds": 30_000},
    "overrunning": {
        "match": {"instance_type": OVERRUNNING_LANE},
        **{"start_seconds": 5, "download_seconds": 5, "load_seconds": 5, "upload_seconds": 0},
        **{"step_seconds": 10, "steps": 140, "warmup_factor": 1},
    },
}
# MiniStack waits this share of the real time between the attempts of a state.
WAIT_SCALE = {"SFN_WAIT_SCALE": "0.01"}
SWEEP_SECONDS = 2
# The tests' own requests are throttled too.
PATIENT = Config(retries={"total_max_attempts": 20, "mode": "standard"})
THROTTLED = re.compile(
    r"\((ThrottlingException|Throttling|TooManyRequestsException|SlowDown|503)\)"
)
TRIES = 10
# The sweep leaves out the last 3 s: events come within a second here, the late ones within 1.5 s.
SWEEP_EVENT = json.dumps({"quiet_seconds": 3}).encode()
LANES = ("ml.g4dn.xlarge", "ml.g5.2xlarge", "ml.g6.xlarge")
TRIALS = 3
FAULTS = {
    "seed": 7,
    "capacity_error_fraction": 0.2,
    "internal_error_fraction": 0.03,
    "out_of_memory_fraction": 0.05,
    "throttling_fraction": 0.1,
    "duplicated_event_fraction": 0.2,
    "late_event_fraction": 0.2,
    "late_event_seconds": 1.5,
    "lost_event_fraction": 0.02,
}
ENDED = {"SUCCEEDED", "FAILED", "TIMED_OUT", "ABORTED"}
# Nothing is tokenised or trained: runs differ only by the faults of their jobs.
SIMULATED_WORKLOAD = {
    "task": "causal-lm",
    "model": {
        "config": {"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 2, "n_positions": 64}
    },
    "tokenizer": {"train_vocabulary_size": 1000},
    "dataset": {"format": "synthetic"},
    "sequence_length": 64,
    "examples": 20000,
}
# RecordRun may lose its worker 60 times, other states 8 times.
SECONDS_BETWEEN_KILLS = (2.0, 10.0)


@dataclass(frozen=True, slots=True)
class ChaosLab:
    lab: LocalLab
    options: tuple[str, ...]

    @property
    def home(self) -> Home:
        return self.lab.home

    def administer(self, path: str, document: dict[str, Any] | None = None) -> Any:
        """Sends a GET, or a POST of the document, to the local SageMaker service."""
        return self.lab.administer(path, document)

    def throttle(self, fraction: float, seed: int) -> None:
        """Throttles requests to MiniStack's services; ``/_local/faults`` throttles the other
        services.
        """
        ministack = f"http://127.0.0.1:{cloud.require_ports(self.home).aws}"
        faults = {"throttling_fraction": fraction, "seed": seed}
        administer(ministack, "/_traindyno/faults", faults, read_access_key(self.home))

    def client(self, service: str) -> Any:
        return self.lab.client(service, PATIENT)

    def deployment(self) -> Deployment:
        return _deployment(self)

    def command(self, *arguments: str) -> Answer:
        """Runs the command again while it ends because a request was throttled too often, as a
        person would.
        """
        for _ in range(TRIES):
            answer = self.lab.traindyno(*arguments)
            if answer.status == 0 or not THROTTLED.search(answer.errors):
                break
        assert answer.status == 0, answer.errors
        return answer

    def ledger(self) -> dict[str, dict[str, Any]]:
        return {row["job_name"]: row for row in self.administer("/_local/ledger")["rows"]}

    def kill_and_restart_sagemaker(self, *more_options: str) -> None:
        """Restarts the service with ``more_options``, which hold until its next restart."""
        ports = cloud.require_ports(self.home)
        daemon = self.home.read_daemon(cloud.SAGEMAKER)
        assert daemon is not None
        os.kill(daemon.process_id, signal.SIGKILL)
        cloud.start_sagemaker(self.home, ports, (*self.options, *more_options))

    def start(self, suite: Path, name: str) -> None:
        self.command("run", str(suite), "--local", "--no-wait", "--name", name)

    def execution_arn(self, name: str) -> str:
        return (
            f"{self.deployment().state_machine_arn.replace(':stateMachine:', ':execution:')}:{name}"
        )

    def execution_status(self, name: str) -> str:
        """The status of the execution; ``UNKNOWN`` if MiniStack was killed before saving it."""
        stepfunctions = self.client("stepfunctions")
        try:
            described = stepfunctions.describe_execution(executionArn=self.execution_arn(name))
        except stepfunctions.exceptions.ExecutionDoesNotExist:
            return "UNKNOWN"
        return str(described["status"])

    def invoke(self, state: str, event: bytes = SWEEP_EVENT) -> None:
        """Calls the function of this state, again while it is throttled."""
        name = _function_name(self, state)
        for _ in range(TRIES):
            answer = self.client("lambda").invoke(FunctionName=name, Payload=event)
            said = answer["Payload"].read()
            if (
                "FunctionError" not in answer
                or json.loads(said).get("errorType") != Throttled.__name__
            ):
                break
        assert "FunctionError" not in answer, said

    def until_swept(self, is_true: Callable[[], bool], seconds: float) -> None:
        """Waits, and starts the sweep every few seconds, because its own schedule is once a
        minute.
        """
        sweep = _function_name(self, "ReconcileRuns")
        functions = self.client("lambda")
        asked_at = time.monotonic()

        def is_true_now() -> bool:
            nonlocal asked_at
            if time.monotonic() > asked_at + SWEEP_SECONDS:
                asked_at = time.monotonic()
                # A sweep may fail; another one follows, as with the schedule.
                functions.invoke(FunctionName=sweep, InvocationType="Event", Payload=SWEEP_EVENT)
            return is_true()

        eventually(is_true_now, seconds, 0.5)

    def function(self, state: str) -> dict[str, Any]:
        pages = self.client("lambda").get_paginator("list_functions").paginate()
        named = [
            function
            for page in pages
            for function in page["Functions"]
            if f"{state}Function" in function["FunctionName"]
        ]
        (function,) = named
        return dict(function)

    def document(self, *arguments: str) -> Any:
        return self.command(*arguments, "--local", "--format", "json").json()


@cache
def _deployment(lab: ChaosLab) -> Deployment:
    return find_deployment(lab.client("cloudformation"), DEFAULT_LAB)


@cache
def _function_name(lab: ChaosLab, state: str) -> str:
    return str(lab.function(state)["FunctionName"])


def suite_document(instances: tuple[str, ...], cells: int, max_job_seconds: int) -> dict[str, Any]:
    return {
        "goal": "fastest",
        "search": "grid",
        "workload": SIMULATED_WORKLOAD,
        "training": {"strategy": "ddp", "precision": "bf16", "learning_rate": {"base": 3.0e-4}},
        "baseline": {"instance": instances[0]},
        "matrix": {"instance": list(instances), "batch_size_per_device": list(range(1, cells + 1))},
        "measurement": {"trials": TRIALS, "max_steps": 10, "jobs": "separate"},
        "limits": {
            "max_usd": 1_000_000,
            "max_hours": 648,
            "max_job_seconds": max_job_seconds,
            "max_attempts": 12,
        },
    }


def counted(chaos: ChaosLab, *instances: str, has_ended: bool) -> int:
    rows = chaos.ledger().values()
    return sum(row["instance_type"] in instances and row["has_ended"] is has_ended for row in rows)


@contextmanager
def chaos_lab(folder: Path) -> Iterator[ChaosLab]:
    trace_folder = folder / "traces"
    trace_folder.mkdir()
    for name, trace in TRACES.items():
        (trace_folder / f"{name}.json").write_text(json.dumps(trace))
    lab = LocalLab(folder)
    options = (*OPTIONS, "--traces", str(trace_folder))
    told: list[str] = []
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in WAIT_SCALE.items():
                patch.setenv(name, value)
            ports = cloud.start(lab.home, tell=told.append, service_options=options)
        deployment.deploy(lab.home, ports, tell=told.append, context=CONTEXT)
        yield ChaosLab(lab, options)
    finally:
        cloud.stop(lab.home)


@contextmanager
def killed_functions(chaos: ChaosLab, seed: int) -> Iterator[Counter[str]]:
    """While the context lasts, a function's worker is killed every few seconds, whatever it does;
    every fifth time, what forks the workers is.
    """
    daemon = chaos.home.read_daemon(cloud.MINISTACK)
    assert daemon is not None
    killed = Counter[str]()
    has_ended = threading.Event()
    dice = random.Random(seed)

    def kill() -> None:
        while not has_ended.wait(dice.uniform(*SECONDS_BETWEEN_KILLS)):
            servers = [
                child
                for child in _children(daemon.process_id)
                if b"worker_fork_server" in _command_line(child)
            ]
            kind = "servers" if killed.total() % 5 == 4 else "workers"
            victims = (
                servers
                if kind == "servers"
                else [child for server in servers for child in _children(server)]
            )
            if victims:
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(victims), signal.SIGKILL)
                    killed[kind] += 1

    killing = threading.Thread(target=kill)
    killing.start()
    try:
        yield killed
    finally:
        has_ended.set()
        killing.join()


def _children(process_id: int) -> list[int]:
    with suppress(OSError):
        files = Path(f"/proc/{process_id}/task").glob("*/children")
        return [int(number) for file in files for number in file.read_text().split()]
    return []


def _command_line(process_id: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process_id}/cmdline").read_bytes()
    return b""
