"""`traindyno deploy`: the model that a run saved, as an endpoint or as a batch transform job."""

import getpass
import secrets
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from traindyno.aws import clients
from traindyno.aws.executions import Execution, Executions
from traindyno.aws.prices import BATCH_TRANSFORM, HOSTING, read_prices
from traindyno.cli.display.deployment_text import lines_after, lines_before, row_document
from traindyno.cli.inputs.staging import StagingArea
from traindyno.cli.lab_choice import ExecutionArgument, FormatOption, LabChoice, LabTarget, with_options_of
from traindyno.cli.output import OutputFormat, print_json, tell
from traindyno.core.costs.prices import SECONDS_PER_HOUR, Price
from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import s3_uri, transform_output_prefix
from traindyno.core.serving.deployment import (
    SERVING_INSTANCE,
    Hosting,
    ModelDeployment,
    deployment_document,
    deployment_name,
    parse_deployment,
)
from traindyno.core.suite.preparation import LOCAL_INSTANCE
from traindyno.lab.services import LabServices
from traindyno.lab.serving.deployable_model import DeployableModel, find_deployable_model
from traindyno.sagemaker.serving.serving_request import check_instance_type, refuse_isolation
from traindyno.store.model_deployments import DeploymentRow

DEFAULT_HOURS = 24.0
LOCAL_POLL_SECONDS, AWS_POLL_SECONDS = 1.0, 10.0


class NotDeployed(TraindynoError):
    """The endpoint did not reach InService, or the transform job failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentChoice(LabChoice):
    """The lab, and the options of the deployment."""

    instance: Annotated[
        str | None,
        typer.Option(help=f"The instance type; by default {SERVING_INSTANCE}, or {LOCAL_INSTANCE} with --local."),
    ] = None
    count: Annotated[int, typer.Option(min=1, help="How many instances.")] = 1
    serverless: Annotated[
        int | None, typer.Option(metavar="MIB", help="A serverless endpoint with this memory, instead of instances.")
    ] = None
    concurrency: Annotated[
        int, typer.Option(min=1, help="Requests that a serverless endpoint answers in parallel.")
    ] = 5
    transform: Annotated[
        str | None,
        typer.Option(
            metavar="PREFIX", help="A batch transform job over this S3 prefix, file or folder, instead of an endpoint."
        ),
    ] = None
    hours: Annotated[
        float | None,
        typer.Option(min=0.01, help=f"The endpoint is deleted after this many hours; by default {DEFAULT_HOURS:g}."),
    ] = None
    keep: Annotated[bool, typer.Option("--keep", help="Keep the endpoint until traindyno undeploy.")] = False
    owner: Annotated[
        str | None, typer.Option(envvar="TRAINDYNO_OWNER", help="The tag traindyno:owner; by default your user name.")
    ] = None

    def __post_init__(self) -> None:
        """Raises BadParameter for options that contradict each other."""
        is_serverless, is_transform, is_timed = (
            each is not None for each in (self.serverless, self.transform, self.hours)
        )
        has_instances = self.instance is not None or self.count > 1
        for names, is_given in (
            ("--serverless and --transform", is_serverless and is_transform),
            ("--serverless and --instance or --count", is_serverless and has_instances),
            ("--keep and --hours", self.keep and is_timed),
            ("--transform and --keep or --hours", is_transform and (self.keep or is_timed)),
        ):
            if is_given:
                raise typer.BadParameter(f"{names} can't be combined: give one of them")

    @property
    def hosting(self) -> Hosting:
        if self.transform is not None:
            return Hosting.TRANSFORM
        return Hosting.ENDPOINT if self.serverless is None else Hosting.SERVERLESS

    @property
    def instance_type(self) -> str | None:
        """None for a serverless endpoint, which has no instances."""
        if self.hosting is Hosting.SERVERLESS:
            return None
        return self.instance or (LOCAL_INSTANCE if self.local else SERVING_INSTANCE)

    def expires_at(self, now: float) -> float | None:
        """Epoch seconds; None for a transform job and for a kept endpoint, which are not deleted."""
        if self.keep or self.hosting is Hosting.TRANSFORM:
            return None
        return now + (self.hours or DEFAULT_HOURS) * SECONDS_PER_HOUR


@with_options_of(DeploymentChoice)
def deploy(
    choice: DeploymentChoice,
    execution: ExecutionArgument,
    cell: Annotated[
        str | None,
        typer.Option(help="The cell whose model is deployed, by id or label; the recommended one by default."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the model answers, or only start.")] = True,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Serve the model that a run saved, and compare its answers with those of the training job."""
    target = choice.find_target()
    if target.deployment.isolates_network:
        refuse_isolation(target.deployment.lab)
    services = target.services
    deployment = _plan(choice, find_deployable_model(execution, cell, target.results), target)
    for line in lines_before(deployment, _earlier(deployment, services), time.time()):
        tell(line)
    executions = Executions(clients.stepfunctions(), target.deployment.deployments_arn)
    executions.start(deployment.name, deployment_document(deployment))
    tell(f"delete it with: traindyno undeploy {deployment.name}{target.option}")
    if wait:
        _finish(deployment.name, target, services, executions, output)
    elif output is OutputFormat.JSON:
        print_json({"name": deployment.name})


def _plan(choice: DeploymentChoice, found: DeployableModel, target: LabTarget) -> ModelDeployment:
    """The deployment, checked as the state machine checks it. Raises DocumentInvalid or ModelNotServable."""
    now, run, lab, instance = time.time(), found.run, target.deployment.lab, choice.instance_type
    if instance is not None:
        check_instance_type(instance)
    price = _price(instance, choice.hosting, now) if instance else None
    deployment = ModelDeployment(
        name=deployment_name(
            lab=lab, suite_name=found.suite.name, cell_id=run.cell.cell_id, unique=secrets.token_hex(3)
        ),
        hosting=choice.hosting,
        suite_name=found.suite.name,
        execution_id=run.execution_id,
        cell_id=run.cell.cell_id,
        run_id=run.run_id,
        job_name=found.job_name,
        task=found.suite.workload.task,
        owner=choice.owner or getpass.getuser(),
        instance_type=instance,
        instance_count=choice.count,
        memory_mib=choice.serverless,
        max_concurrency=choice.concurrency if choice.hosting is Hosting.SERVERLESS else None,
        usd_per_hour=price.usd_per_hour if price else None,
        price_source=f"{price.source}, {price.as_of}" if price else None,
        expires_at=choice.expires_at(now),
        input_s3_uri=None if choice.transform is None else _staged(choice.transform, target),
    )
    return parse_deployment(deployment_document(deployment), lab=lab)


def _price(instance_type: str, hosting: Hosting, now: float) -> Price | None:
    usage = BATCH_TRANSFORM if hosting is Hosting.TRANSFORM else HOSTING
    region = clients.s3().meta.region_name
    return read_prices(clients.pricing(), [instance_type], region=region, now=now, usage=usage).get(instance_type)


def _staged(path: str, target: LabTarget) -> str:
    stage = StagingArea(beside=Path.cwd(), s3=clients.s3(), bucket=target.deployment.bucket, tell=tell)
    return stage.stage_path(path, "transform")


def _earlier(deployment: ModelDeployment, services: LabServices) -> DeploymentRow | None:
    """The latest endpoint of the same cell and instance type whose latency was measured."""
    same = [
        row
        for row in services.deployments.list_all()
        if row.latency is not None
        and (row.deployment.execution_id, row.deployment.cell_id, row.deployment.instance_type)
        == (deployment.execution_id, deployment.cell_id, deployment.instance_type)
    ]
    return max(same, key=lambda row: row.created_at, default=None)


def _finish(name: str, target: LabTarget, services: LabServices, executions: Executions, output: OutputFormat) -> None:
    execution = _await_end(name, target, executions)
    row = services.deployments.find(name)
    if row is None or execution.status != "SUCCEEDED":
        cause = execution.cause or (row.message if row else None) or "the state machine gave no cause"
        raise NotDeployed(f"{name} was not deployed ({execution.error or execution.status.lower()}): {cause}")
    if output is OutputFormat.JSON:
        print_json(row_document(row, time.time()))
        return
    for line in lines_after(row, time.time()):
        tell(line)
    if not row.deployment.is_endpoint:
        tell(f"answers: {s3_uri(target.deployment.bucket, transform_output_prefix(name))}")


def _await_end(name: str, target: LabTarget, executions: Executions) -> Execution:
    """If it is interrupted, the deployment continues."""
    seconds = LOCAL_POLL_SECONDS if target.is_local else AWS_POLL_SECONDS
    while (found := executions.describe(name)).is_running:
        time.sleep(seconds)
    return found
