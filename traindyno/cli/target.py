"""The lab that a command uses: the local cloud's, or one in an AWS account."""

import os
import time
from dataclasses import dataclass

from traindyno.aws import clients
from traindyno.aws.deployment import Deployment, find_deployment
from traindyno.aws.executions import Executions
from traindyno.cli.display.execution_receipt import ExecutionReceipt, load_receipt
from traindyno.cli.inputs.checkout import require_checkout
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.lab.environment import BucketEnvironment
from traindyno.lab.services import LabServices, open_services
from traindyno.store.results_bucket import ResultsBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    is_local: bool
    deployment: Deployment
    executions: Executions
    services: LabServices

    @property
    def results(self) -> ResultsBucket:
        return self.services.bucket

    @property
    def option(self) -> str:
        """The options that select the same lab in another command."""
        if self.is_local:
            return " --local"
        return "" if self.deployment.lab == DEFAULT_LAB else f" --lab {self.deployment.lab}"

    def find_stall(self) -> str | None:
        """Why the execution makes no progress, if this machine shows it."""
        return find_local_stall() if self.is_local else None

    def receipt(self, execution_id: str) -> ExecutionReceipt:
        execution = self.executions.describe(execution_id)
        return load_receipt(execution, services=self.services, lab=self.deployment.lab, now=time.time())


def find_local_stall() -> str | None:
    """Why the local cloud can't make progress; None if it works."""
    from localcloud import cloud, home  # noqa: PLC0415  (the wheel lacks it)

    return cloud.find_stall(home.Home.from_environment())


def choose_account(*, is_local: bool, region: str | None = None, profile: str | None = None) -> None:
    """Make every AWS client that is created after this call use the chosen account."""
    if is_local:
        environment = _local_environment()
        os.environ.clear()
        os.environ.update(environment)
    if profile:
        os.environ["AWS_PROFILE"] = profile
    if region and not is_local:
        os.environ["AWS_REGION"] = os.environ["AWS_DEFAULT_REGION"] = region


def _local_environment() -> dict[str, str]:
    require_checkout("--local")
    from localcloud import cloud, environment, home  # noqa: PLC0415  (the wheel lacks it)

    return environment.local_environment(cloud.require_ports(home.Home.from_environment()))


def find_target(*, is_local: bool, lab: str, region: str | None, profile: str | None) -> Target:
    choose_account(is_local=is_local, region=region, profile=profile)
    deployment = find_deployment(clients.cloudformation(), DEFAULT_LAB if is_local else lab)
    environment = BucketEnvironment(lab=deployment.lab, table=deployment.table, bucket=deployment.bucket)
    return Target(
        is_local=is_local,
        deployment=deployment,
        executions=Executions(clients.stepfunctions(), deployment.state_machine_arn),
        services=open_services(environment),
    )
