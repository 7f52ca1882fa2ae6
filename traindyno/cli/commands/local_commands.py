"""`traindyno local`: the cloud on this machine, start, stop and status."""

import shlex
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError

from localcloud import cloud, daemons, deployment
from localcloud.daemons import LocalCloudFailed
from localcloud.environment import (
    FOREIGN,
    aws_settings,
    local_client,
    local_environment,
    read_access_key,
)
from localcloud.home import DocumentDamaged, Home, HomeUnusable, Ports
from localcloud.sagemaker_service.instance_table import PricesInvalid, read_given_prices
from localcloud.sagemaker_service.replay.trace import TraceInvalid, read_traces
from traindyno.aws.deployment import LabNotDeployed, find_deployment
from traindyno.aws.executions import Executions
from traindyno.cli.inputs.execution_receipt import ENDED_BY_RESTART
from traindyno.cli.lab_choice import FormatOption
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, tell
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import DEFAULT_LAB

LATEST = 100
STILL_RUNS = "the local cloud still runs"
# A MiniStack that hangs must be stopped too, and soon.
QUICK = {"connect_timeout": 1, "read_timeout": 3, "retries": {"total_max_attempts": 1}}
app = typer.Typer(
    help="The cloud on this machine: MiniStack and the local SageMaker service.",
    no_args_is_help=True,
)
GrantOption = Annotated[
    int | None,
    typer.Option(
        "--grant-quotas",
        min=1,
        metavar="INSTANCES",
        help="The quota of each AWS instance type for rehearsals, instead of AWS's default quotas.",
    ),
]


def running_executions(home: Home, *, tell: Callable[[str], None]) -> tuple[str, ...]:
    """The executions that run; none if MiniStack does not run or does not answer."""
    if not daemons.running(home, cloud.MINISTACK):
        return ()
    try:
        return tuple(_machine(home).list_running())
    except LabNotDeployed:
        return ()
    except (BotoCoreError, ClientError, HomeUnusable) as error:
        tell(f"whether executions are running is unknown: {error}")
        return ()


def failed_by_restart(home: Home, *, since: float) -> Iterator[str]:
    """The executions that ran when MiniStack ended, and failed when it started again after
    ``since``.
    """
    machine = _machine(home)
    for execution in machine.list_latest(LATEST):
        # Step Functions gives whole milliseconds.
        is_new = execution.ended_at is not None and execution.ended_at >= since - 1
        if is_new and machine.describe(execution.execution_id).error == ENDED_BY_RESTART:
            yield execution.execution_id


def _machine(home: Home) -> Executions:
    ministack, sagemaker = (
        daemons.running(home, part) for part in (cloud.MINISTACK, cloud.SAGEMAKER)
    )
    if ministack is None:
        raise daemons.LocalCloudFailed(f"MiniStack of the local cloud in {home.folder} has ended")
    ports = Ports(aws=ministack.port, sagemaker=sagemaker.port if sagemaker else ministack.port)
    settings = local_environment(ports, read_access_key(home))
    local_lab = find_deployment(local_client(settings, "cloudformation", **QUICK), DEFAULT_LAB)
    return Executions(local_client(settings, "stepfunctions", **QUICK), local_lab.state_machine_arn)


class NotConfirmed(TraindynoError):
    """Nothing was changed, because no one confirmed it."""


def confirm_stop() -> None:
    """Raises NotConfirmed unless the answer is yes."""
    tell("Stop the local cloud? [y/N]")
    answer = sys.stdin.readline()
    if not answer:
        raise NotConfirmed(f"{STILL_RUNS}: no answer came; accepted: y or n, or the option --yes")
    if answer.strip().lower() not in {"y", "yes"}:
        raise NotConfirmed(STILL_RUNS)


def check_traces(folder: Path | None) -> Path | None:
    try:
        if folder is not None and not read_traces(folder):
            raise typer.BadParameter(f"{folder} has no file *.json, expected a folder of traces")
    except TraceInvalid as error:
        raise typer.BadParameter(str(error)) from error
    return folder


def check_prices(path: Path | None) -> Path | None:
    if path is not None:
        try:
            read_given_prices(path)
        except PricesInvalid as error:
            raise typer.BadParameter(str(error)) from error
    return path


TracesOption = Annotated[
    Path | None,
    typer.Option(
        "--traces",
        resolve_path=True,
        metavar="FOLDER",
        callback=check_traces,
        help="Traces that simulated jobs replay instead of nominal times; see docs/local-cloud.md.",
    ),
]
PricesOption = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        resolve_path=True,
        metavar="FILE",
        callback=check_prices,
        help='A JSON file of USD per instance hour, {"ml.p4d.24xlarge": "37.69"}, before the '
        "snapshot's prices.",
    ),
]


@app.command(epilog="Example: traindyno local up --grant-quotas 8")
def up(
    grant_quotas: GrantOption = None, traces: TracesOption = None, prices: PricesOption = None
) -> None:
    """Start the local cloud and deploy the CDK app into it; running services are used again."""
    home = Home.from_environment()
    given = {"--grant-quotas": grant_quotas, "--traces": traces, "--prices": prices}
    options = tuple(
        word for name, value in given.items() if value is not None for word in (name, str(value))
    )
    with home.alone(tell=tell):
        if options and cloud.status(home).sagemaker:
            raise LocalCloudFailed(
                f"the local cloud in {home.folder} is running and keeps the settings of its start, "
                f"not {' '.join(options)}; first run: traindyno local down"
            )
        started_at = time.time()
        ports = cloud.start(home, tell=tell, service_options=options)
        is_new = deployment.deploy(home, ports, tell=tell)
        for name in failed_by_restart(home, since=started_at):
            tell(
                f"execution {name} was running and has failed; its receipt may lack the jobs of "
                f"its last seconds; what it measured: traindyno report {name} --local; to measure "
                f"the rest: traindyno run SUITE --continue {name} --local"
            )
    tell(
        f"the local cloud is up{'' if is_new else ' (nothing to deploy)'}; stop it with: traindyno "
        "local down"
    )


@app.command(epilog="Example: traindyno local status --format json")
def status(output: FormatOption = OutputFormat.TABLE) -> None:
    """Show which services run; exit status 3 if the local cloud is not running."""
    home = Home.from_environment()
    health = cloud.status(home)
    if output is OutputFormat.JSON:
        print_json({**asdict(health), "home": str(health.home)})
    else:
        for name, is_running in (
            ("MiniStack", health.ministack),
            ("SageMaker service", health.sagemaker),
        ):
            STANDARD_OUTPUT.print(f"{name:18} {'running' if is_running else 'not running'}")
        STANDARD_OUTPUT.print(f"{'state':18} {health.home}", soft_wrap=True)
        if health.problem:
            STANDARD_OUTPUT.print(f"{'problem':18} {health.problem}", soft_wrap=True)
    raise typer.Exit(0 if health.ports else 3)


@app.command(epilog="Example: traindyno local down --erase")
def down(
    erase: Annotated[
        bool, typer.Option("--erase", help="Also remove all state and results.")
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Don't ask, although executions are running.")
    ] = False,
) -> None:
    """Stop the local cloud and the training jobs that run in it.

    Executions that are running end as failed.
    """
    home = Home.from_environment()
    if not home.folder.exists():
        tell("no local cloud was running")
        return
    with home.alone(tell=tell):
        try:
            names = () if yes else running_executions(home, tell=tell)
        except DocumentDamaged:
            if not erase:
                raise
            names = ()
        if names:
            tell(f"running, and would end as failed: {', '.join(names)}")
            confirm_stop()
        if erase:
            cloud.erase(home)
            tell(f"removed {home.folder}")
        else:
            tell("the local cloud is stopped" if cloud.stop(home) else "no local cloud was running")


@app.command(epilog="Example: traindyno local env --format json")
def env(output: FormatOption = OutputFormat.TABLE) -> None:
    """Print the variables that connect boto3 and the AWS CLI to the local cloud: eval "$(traindyno
    local env)".
    """
    home = Home.from_environment()
    variables = aws_settings(cloud.require_ports(home), read_access_key(home))
    if output is OutputFormat.JSON:
        print_json(variables)
        return
    STANDARD_OUTPUT.print(f"unset {' '.join(FOREIGN)}")
    for name, value in variables.items():
        STANDARD_OUTPUT.print(f"export {name}={shlex.quote(value)}")
