"""A separate local cloud in a new folder, used through the command line."""

import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import psutil

from localcloud.cloud import HEALTH, MINISTACK, SAGEMAKER, environment_of, request_to, require_ports
from localcloud.home import HOME_VARIABLE, REPO_ROOT, Home
from traindyno.aws.deployment import Deployment, find_deployment
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import DEFAULT_LAB

ENDED = frozenset({"Completed", "Failed", "Stopped"})


class CommandFailed(TraindynoError):
    """A command under measurement failed; carries its output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    seconds: float
    output: str

    def json(self) -> Any:
        return json.loads(self.output)


@dataclass(frozen=True, slots=True)
class OwnCloud:
    folder: Path

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    def traindyno(self, *arguments: str) -> Answer:
        began = time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-m", "traindyno", *arguments],
            cwd=REPO_ROOT,
            env={**os.environ, HOME_VARIABLE: str(self.home.folder)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode != 0:
            raise CommandFailed(
                f"traindyno {' '.join(arguments)} ended with {ended.returncode}:\n{ended.stderr}"
            )
        return Answer(seconds=time.perf_counter() - began, output=ended.stdout)

    def run_suite(self, suite: Path, name: str) -> Answer:
        """Its answer is the report as JSON."""
        options = [
            "--local",
            "--name",
            name,
            "--format",
            "json",
            "--output",
            str(self.folder / "reports"),
        ]
        return self.traindyno("run", str(suite), *options)

    def client(self, service: str) -> Any:
        environment = environment_of(self.home)
        endpoint = environment.get(
            f"AWS_ENDPOINT_URL_{service.upper()}", environment["AWS_ENDPOINT_URL"]
        )
        session = boto3.Session(
            aws_access_key_id=environment["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=environment["AWS_SECRET_ACCESS_KEY"],
            region_name=environment["AWS_REGION"],
        )
        return session.client(service, endpoint_url=endpoint)  # type: ignore[call-overload]

    def ended_jobs(self) -> int:
        with urllib.request.urlopen(
            request_to(self.home, require_ports(self.home).sagemaker, HEALTH)
        ) as answer:
            counts: Mapping[str, int] = json.load(answer)["jobs"]
        return sum(count for status, count in counts.items() if status in ENDED)

    def cpu_seconds(self) -> float:
        """CPU time of the local cloud's living processes, with its functions' workers."""
        daemons = [self.home.read_daemon(name) for name in (MINISTACK, SAGEMAKER)]
        roots = [psutil.Process(daemon.process_id) for daemon in daemons if daemon]
        family = [process for root in roots for process in (root, *root.children(recursive=True))]
        times = [process.cpu_times() for process in family if process.is_running()]
        return sum(cpu_times.user + cpu_times.system for cpu_times in times)

    def deployment(self) -> Deployment:
        return find_deployment(self.client("cloudformation"), DEFAULT_LAB)

    def execution_arn(self, name: str) -> str:
        return (
            f"{self.deployment().state_machine_arn.replace(':stateMachine:', ':execution:')}:{name}"
        )


@contextmanager
def own_cloud() -> Iterator[OwnCloud]:
    """Starts nothing; at the end it stops and removes the local cloud, also after an error."""
    with tempfile.TemporaryDirectory(prefix="traindyno-bench-") as folder:
        cloud = OwnCloud(Path(folder))
        try:
            yield cloud
        finally:
            cloud.traindyno("local", "down", "--erase", "--yes")
