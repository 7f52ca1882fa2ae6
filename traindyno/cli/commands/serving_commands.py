"""`traindyno deploy`, `endpoints` and `undeploy`: the models that runs saved, as endpoints."""

import getpass
import re
import secrets
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated

import typer

from traindyno.api.lab_target import LabTarget
from traindyno.api.served_model import (
    check_endpoint,
    deploy_model,
    find_deployable_model,
)
from traindyno.aws.client_errors import AwsError
from traindyno.aws.prices import HOSTING, PriceSource
from traindyno.cli.completion import completed_by
from traindyno.cli.display.deployment_text import (
    deployment_figures,
    deployments_table,
    lines_after,
    lines_before,
)
from traindyno.cli.lab_choice import (
    CellOption,
    ExecutionArgument,
    FormatOption,
    LabChoice,
    with_options_of,
)
from traindyno.cli.option_values import finite, matching
from traindyno.cli.option_values import job_name as job_name_option
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, tell
from traindyno.core.errors import TraindynoError
from traindyno.core.serving.deployment import (
    SERVING_INSTANCE,
    ModelDeployment,
    ModelNotServable,
    deployment_document,
    deployment_name,
    parse_deployment,
)
from traindyno.core.suite.preparation import LOCAL_INSTANCE
from traindyno.lab.end_endpoints import Serving, open_serving, remove_endpoint
from traindyno.lab.environment import BucketEnvironment
from traindyno.sagemaker.serving import ENDPOINT_LOG_GROUP

LOCAL_POLL_SECONDS = 1.0
AWS_POLL_SECONDS = 10.0
FAILURES = (*AwsError, TraindynoError)
# The table of instance types lacks newer types.
INSTANCE = re.compile(
    r"ml\.(?!trn|inf)[a-z][a-z0-9-]*\.(medium|large|\d*xlarge|metal)|local\.(cpu|gpu)"
)


class NotDeployed(TraindynoError):
    """The endpoint was not created, did not reach InService, or its answers differ."""


class DeploymentUnknown(TraindynoError):
    """The lab has no endpoint of this name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentChoice(LabChoice):
    instance: Annotated[
        str | None,
        typer.Option(
            help=f"The instance type; by default {SERVING_INSTANCE}, or {LOCAL_INSTANCE} with "
            "--local.",
            callback=matching(
                INSTANCE, f"an instance type with CPUs or NVIDIA GPUs, such as {SERVING_INSTANCE}"
            ),
        ),
    ] = None
    hours: Annotated[
        float,
        typer.Option(
            min=0.01, callback=finite, help="The endpoint is deleted after this many hours."
        ),
    ] = 24.0
    max_usd: Annotated[
        float | None,
        typer.Option(
            min=0.01,
            callback=finite,
            help="The endpoint is deleted before it costs more than this many USD, also while this "
            "machine is off.",
        ),
    ] = None

    def __post_init__(self) -> None:
        """Raises BadParameter."""
        if (self.instance or "").startswith("local.") and not self.local:
            message = f"{self.instance} is an instance type of the local cloud: add --local"
            raise typer.BadParameter(message, param_hint="--instance")


@with_options_of(DeploymentChoice)
def deploy(
    choice: DeploymentChoice,
    execution: ExecutionArgument,
    cell: CellOption = None,
) -> None:
    """Serve the model that a run saved, and compare its answers with those of the training job.

    The suite needs measurement: {save_model: true}. An endpoint is billed until it expires or
    `traindyno undeploy`.
    """
    _deploy(choice, execution, cell)


def deploy_recommended(choice: LabChoice, execution: str) -> None:
    place = {name: getattr(choice, name) for name in ("local", "region", "profile", "lab")}
    _deploy(DeploymentChoice(**place), execution, None)


def _deploy(choice: DeploymentChoice, execution: str, cell: str | None) -> None:
    target = choice.find_target()
    target.require_execution(execution)
    deployment = _plan(choice, execution, cell, target)
    serving = serving_of(target)
    refuse_second(deployment, serving)
    for line in lines_before(deployment):
        tell(line)
    name = deployment.name
    poll_seconds = LOCAL_POLL_SECONDS if target.is_local else AWS_POLL_SECONDS
    tell(f"delete it with: traindyno undeploy {name}{target.option}")
    try:
        deploy_model(deployment, serving, target.deployment.serving, clock=time.time)
        _await_service(name, serving, poll_seconds)
        samples, latency = check_endpoint(deployment, serving)
    except FAILURES as error:
        why = f"{name} was not deployed ({type(error).__name__}): {error}"
        try:
            remove_endpoint(name, serving)
        except FAILURES as kept:
            why += (
                f"\nit could not be deleted yet: {kept}; repeat it with: traindyno undeploy {name}"
            )
        raise NotDeployed(why) from error
    for line in lines_after(deployment, samples, latency):
        tell(line)


def _plan(
    choice: DeploymentChoice, execution: str, cell: str | None, target: LabTarget
) -> ModelDeployment:
    """Raises DocumentInvalid or ModelNotServable."""
    suite, run, job_name = find_deployable_model(execution, cell, target.results)
    now = time.time()
    lab = target.deployment.lab
    instance = choice.instance or (LOCAL_INSTANCE if choice.local else SERVING_INSTANCE)
    price = (
        PriceSource(region=target.deployment.serving.region, now=now)
        .read([instance], HOSTING)
        .get(instance)
    )
    cell_id = run.cell.cell_id
    unique = secrets.token_hex(3)
    deployment = ModelDeployment(
        name=deployment_name(lab=lab, suite_name=suite.name, cell_id=cell_id, unique=unique),
        execution_id=run.execution_id,
        run_id=run.run_id,
        job_name=job_name,
        owner=getpass.getuser(),
        instance_type=instance,
        created_at=now,
        usd_per_hour=price.usd_per_hour if price else None,
        hours=choice.hours,
        max_usd=None if choice.max_usd is None else Decimal(str(choice.max_usd)),
    )
    return parse_deployment(deployment_document(deployment), lab=lab)


def refuse_second(deployment: ModelDeployment, serving: Serving) -> None:
    """Refuse another endpoint of the same model, which would be billed too, as after a command that
    died.

    Raises ModelNotServable.
    """
    same = (deployment.job_name, deployment.instance_type, deployment.owner)
    for other in filter(None, map(serving.find, serving.names())):
        if (other.job_name, other.instance_type, other.owner) == same:
            raise ModelNotServable(
                f"{other.name} has the model of {other.job_name} on {other.instance_type} already; "
                f"delete it with: traindyno undeploy {other.name}"
            )


def serving_of(target: LabTarget) -> Serving:
    lab = target.deployment
    return open_serving(BucketEnvironment(lab=lab.lab, table=lab.table, bucket=lab.bucket))


def _await_service(name: str, serving: Serving, poll_seconds: float) -> None:
    """Wait until the endpoint answers. If the wait is interrupted, the endpoint stays until it
    expires.
    """
    while True:
        state = serving.endpoints.find(name)
        if state is None:
            raise NotDeployed("the endpoint was deleted before it was in service")
        if state.status == "InService":
            return
        if state.has_failed:
            cause = (
                state.failure
                or f"SageMaker ended the endpoint as {state.status} and gave no reason"
            )
            raise NotDeployed(f"{cause}\nthe container's log is {ENDPOINT_LOG_GROUP}/{name}")
        time.sleep(poll_seconds)


@with_options_of(LabChoice)
def endpoints(choice: LabChoice, output: FormatOption = OutputFormat.TABLE) -> None:
    """List endpoints with their status, cost and expiry."""
    serving = serving_of(choice.find_target())
    now = time.time()
    states = {state.name: state.status for state in serving.endpoints.list_named(serving.lab)}
    rows = {name: row for name in serving.names() if (row := serving.find(name))}
    statuses = {name: states.get(name, "not created yet") for name in rows}
    if output is OutputFormat.JSON:
        print_json([deployment_figures(row, statuses[name], now) for name, row in rows.items()])
    elif rows:
        STANDARD_OUTPUT.print(deployments_table(rows, statuses, now))
    else:
        tell("no model is deployed; deploy one with: traindyno deploy EXECUTION")


@with_options_of(LabChoice)
def undeploy(
    choice: LabChoice,
    name: Annotated[
        str,
        typer.Argument(
            help="The endpoint's name, as `traindyno endpoints` shows it.",
            callback=job_name_option,
            autocompletion=completed_by(lambda target: serving_of(target).names()),
        ),
    ],
) -> None:
    """Delete an endpoint with its model; its billing stops."""
    serving = serving_of(choice.find_target())
    is_there = serving.find(name) is not None or serving.endpoints.find(name) is not None
    if not is_there or not remove_endpoint(name, serving):
        ours = ", ".join(serving.names()) or "none"
        raise DeploymentUnknown(
            f"no endpoint {name} has the tag of lab {serving.lab}; its endpoints: {ours}"
        )
    tell(f"{name} is deleted")
