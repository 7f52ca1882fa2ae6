"""A local cloud for tests, used through the command line as a person does."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import yaml
from botocore.config import Config

from localcloud.cloud import environment_of, require_ports
from localcloud.environment import read_access_key
from localcloud.home import Home
from tests.local.forked_programs import REPO_ROOT, Answer, run_command
from tests.local.running_service import administer
from traindyno.aws.deployment import Deployment, find_deployment
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.core.planning.quotas import instance_quota
from traindyno.core.suite.choices import Purchase


@dataclass(frozen=True, slots=True)
class LocalLab:
    """A local lab in a folder that has the local cloud's home, and the suites and reports of the
    tests.
    """

    folder: Path

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    def traindyno(self, *arguments: str) -> Answer:
        """Runs the command in the lab's folder."""
        environment = {
            **os.environ,
            "TRAINDYNO_HOME": str(self.home.folder),
            "PYTHONPATH": str(REPO_ROOT),
        }
        return run_command(*arguments, folder=self.folder, environment=environment)

    def succeed(self, *arguments: str) -> Answer:
        answer = self.traindyno(*arguments)
        assert answer.status == 0, answer.errors
        return answer

    def run_suite(self, name: str, suite: dict[str, Any], execution: str = "") -> Answer:
        """Runs it to its verdict; the answer has the report.

        Without a name, the execution has the suite's.
        """
        path = self.write_suite(name, suite)
        return self.succeed(
            "run", str(path), "--local", "--name", execution or name, "--format", "json"
        )

    def receipt(self, execution: str) -> dict[str, Any]:
        answer = self.succeed("report", "--receipt", execution, "--local", "--format", "json")
        document: dict[str, Any] = answer.json()
        return document

    def billed_seconds(self, name_part: str) -> dict[str, Decimal]:
        """By job, from the service's own ledger."""
        rows = self.administer("/_local/ledger")["rows"]
        return {
            row["job_name"]: Decimal(str(row["billed_seconds"]))
            for row in rows
            if name_part in row["job_name"]
        }

    def client(self, service: str, config: Config | None = None) -> Any:
        return _client(service, config, **self._connection(service))

    def table(self, name: str | None = None) -> Any:
        """A DynamoDB table as boto3's resource; by default it is the lab's."""
        resource = boto3.resource("dynamodb", **self._connection("dynamodb"))  # type: ignore[call-overload]
        return resource.Table(name or self.deployment().table)

    def _connection(self, service: str) -> dict[str, str]:
        environment = environment_of(self.home)
        endpoint = environment.get(
            f"AWS_ENDPOINT_URL_{service.upper().replace('-', '_')}", environment["AWS_ENDPOINT_URL"]
        )
        return {
            "endpoint_url": endpoint,
            "region_name": environment["AWS_REGION"],
            "aws_access_key_id": environment["AWS_ACCESS_KEY_ID"],
            "aws_secret_access_key": environment["AWS_SECRET_ACCESS_KEY"],
        }

    def grant_quotas(self, instances: int, *instance_types: str) -> None:
        """Sets quotas of on-demand training jobs, as approved requests would."""
        codes = {
            str(instance_quota(name, Purchase.ON_DEMAND).code): instances for name in instance_types
        }
        self.administer("/_local/quotas", codes)

    def administer(self, path: str, document: Mapping[str, Any] | None = None) -> Any:
        """The answer of the local SageMaker service."""
        endpoint = f"http://127.0.0.1:{require_ports(self.home).sagemaker}"
        return administer(endpoint, path, document, read_access_key(self.home))

    def deployment(self) -> Deployment:
        return find_deployment(self.client("cloudformation"), DEFAULT_LAB)

    def write_suite(self, name: str, document: dict[str, Any]) -> Path:
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump({"name": name, **document}, sort_keys=False))
        return path

    def write_script(self, folder: str, text: str) -> str:
        (self.folder / folder).mkdir(exist_ok=True)
        (self.folder / folder / "train.py").write_text(text)
        return folder


@contextmanager
def started_lab(folder: Path, *options: str) -> Iterator[LocalLab]:
    """With the deployed app. It is stopped and removed at the end, also after a failure."""
    lab = LocalLab(folder)
    try:
        lab.succeed("local", "up", *options)
        yield lab
    finally:
        lab.traindyno("local", "down", "--erase", "--yes")


def script_suite(source: str, matrix: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Of a user's script; the members of ``workload`` are added to those of it."""
    workload = {"task": "script", "source": source, "entry_point": "train.py", "examples": 1000}
    return {
        "goal": "fastest",
        "search": "grid",
        "training": {"instance": "local.cpu", "strategy": "single"},
        "matrix": matrix,
        "measurement": {"trials": 2},
        "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 300},
        **changes,
        "workload": {**workload, **changes.get("workload", {})},
    }


@cache
def _client(service: str, config: Config | None, **connection: str) -> Any:
    """A client is made once, because tests that wait for something send many requests."""
    return boto3.client(service, config=config, **connection)  # type: ignore[call-overload]
