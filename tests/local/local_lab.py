"""A local cloud for tests, used through the command line as a person does."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
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
    """``folder`` has the local cloud's home, and the suites and reports of the tests."""

    folder: Path

    @property
    def home(self) -> Home:
        return Home(self.folder / "home")

    def traindyno(self, *arguments: str) -> Answer:
        """Runs the command in the lab's folder."""
        environment = {**os.environ, "TRAINDYNO_HOME": str(self.home.folder), "PYTHONPATH": str(REPO_ROOT)}
        return run_command(*arguments, folder=self.folder, environment=environment)

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
        codes = {str(instance_quota(name, Purchase.ON_DEMAND).code): instances for name in instance_types}
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


@cache
def _client(service: str, config: Config | None, **connection: str) -> Any:
    """A client is made once, because tests that wait for something send many requests."""
    return boto3.client(service, config=config, **connection)  # type: ignore[call-overload]
