"""`traindyno deploy`: the model that a run saved, as an endpoint or as a batch transform job."""

import getpass
import re
import secrets
import time
from decimal import Decimal
from pathlib import Path
from typing import Annotated

import typer

from traindyno.api.lab_target import LabTarget
from traindyno.api.staging import StagingArea
from traindyno.aws import clients
from traindyno.aws.executions import Execution, Executions
from traindyno.aws.prices import BATCH_TRANSFORM, HOSTING, read_prices
from traindyno.cli.display.deployment_text import closing_text, lines_after, lines_before, row_document
from traindyno.cli.inputs.also_send import read_also_send
from traindyno.cli.inputs.deployment_choice import SERVERLESS_ONLY, DeploymentChoice
from traindyno.cli.lab_choice import ExecutionArgument, FormatOption, with_options_of
from traindyno.cli.option_values import matching
from traindyno.cli.output import OutputFormat, print_json, tell
from traindyno.core.costs.prices import Price
from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import s3_uri, transform_output_prefix
from traindyno.core.serving.deployment import Hosting, ModelDeployment, deployment_name
from traindyno.core.serving.deployment_document import deployment_document, parse_deployment
from traindyno.lab.services import LabServices
from traindyno.lab.serving.deployable_model import DeployableModel, find_deployable_model
from traindyno.sagemaker.serving.serving_request import refuse_isolation
from traindyno.store.model_deployments import DeploymentRow

LOCAL_POLL_SECONDS, AWS_POLL_SECONDS = 1.0, 10.0


class NotDeployed(TraindynoError):
    """The endpoint did not reach InService, or the transform job failed."""


@with_options_of(DeploymentChoice, SERVERLESS_ONLY)
def deploy(
    choice: DeploymentChoice,
    execution: ExecutionArgument,
    cell: Annotated[
        str | None,
        typer.Option(
            help="The cell whose model is deployed, by its id or label; by default the recommended one.",
            callback=matching(re.compile(".+", re.DOTALL), "the id or the label of a cell, as the report shows it"),
        ),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait until the model answers, or only start.")] = True,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Serve the model that a run saved, and compare its answers with those of the training job.

    The suite needs measurement: {save_model: true}. An endpoint is billed until it expires or `traindyno undeploy`.
    """
    target = choice.find_target()
    if target.deployment.isolates_network:
        refuse_isolation(target.deployment.lab)
    services = target.services
    target.require_execution(execution)
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
        input_s3_uri=staged_input(choice, target),
        max_usd=None if choice.max_usd is None else Decimal(str(choice.max_usd)),
    )
    return parse_deployment(deployment_document(deployment), lab=lab)


def _price(instance_type: str, hosting: Hosting, now: float) -> Price | None:
    usage = BATCH_TRANSFORM if hosting is Hosting.TRANSFORM else HOSTING
    region = clients.s3().meta.region_name
    return read_prices(clients.pricing(), [instance_type], region=region, now=now, usage=usage).get(instance_type)


def staged_input(choice: DeploymentChoice, target: LabTarget) -> str | None:
    """The S3 URI of the requests of a transform job; its local files are sent."""
    if choice.transform is None:
        return None
    stage = StagingArea(
        beside=Path.cwd(),
        s3=clients.s3(),
        bucket=target.deployment.bucket,
        tell=tell,
        allowed=read_also_send(choice.also_send),
    )
    return stage.stage_path(choice.transform, "transform")


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
        cost = f"\n{closing_text(row, time.time())}" if row else ""
        raise NotDeployed(f"{name} was not deployed ({execution.error or execution.status.lower()}): {cause}{cost}")
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
