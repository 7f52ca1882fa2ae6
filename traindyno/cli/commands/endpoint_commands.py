"""`traindyno endpoints` and `traindyno undeploy`: the served models with their cost, and their deletion."""

import time
from typing import Annotated

import typer

from traindyno.cli.display.deployment_text import closing_text, deployments_table, row_document
from traindyno.cli.lab_choice import FormatOption, LabChoice, with_options_of
from traindyno.cli.option_values import job_name
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, tell
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import jobs_prefix
from traindyno.lab.serving.remove_endpoint import cancel_deployment


class DeploymentUnknown(TraindynoError):
    """The lab has no endpoint or transform job of this name."""


@with_options_of(LabChoice)
def endpoints(
    choice: LabChoice,
    removed: Annotated[bool, typer.Option("--all", help="Also those that were deleted, with their cost.")] = False,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """List endpoints and transform jobs with their latency, cost and expiry."""
    target, now = choice.find_target(), time.time()
    rows = [row for row in target.services.deployments.list_all() if removed or row.is_open]
    rows.sort(key=lambda row: row.created_at, reverse=True)
    if output is OutputFormat.JSON:
        print_json([row_document(row, now) for row in rows])
    elif rows:
        STANDARD_OUTPUT.print(deployments_table(rows, now))
    else:
        tell("no model is deployed; deploy one with: traindyno deploy EXECUTION")


@with_options_of(LabChoice)
def undeploy(
    choice: LabChoice,
    name: Annotated[
        str,
        typer.Argument(
            help="The endpoint's or transform job's name, as `traindyno endpoints` shows it.", callback=job_name
        ),
    ],
) -> None:
    """Delete an endpoint, or stop a transform job, with its model; its billing stops."""
    target, now = choice.find_target(), time.time()
    services = target.services
    row = services.deployments.find(name) or services.deployments.find(f"{jobs_prefix(target.deployment.lab)}{name}")
    if row is None:
        open_names = [each.deployment.name for each in services.deployments.list_all() if each.is_open]
        raise DeploymentUnknown(f"no endpoint {name}; open ones: {', '.join(open_names) or 'none'}")
    found = row.deployment.name
    if cancel_deployment(found, services=services, now=now, message="removed by traindyno undeploy"):
        tell(f"{found} is deleted")
    else:
        tell(f"{found} is already deleted{f': {row.message}' if row.message else ''}")
    row = services.deployments.find(found) or row
    tell(closing_text(row, now))
