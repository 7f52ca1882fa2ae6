"""`traindyno logs`: delete or expire what SageMaker logged for a lab, which `cdk destroy` does not delete."""

from collections import Counter
from typing import Annotated

import typer

from traindyno.aws import clients
from traindyno.aws.deployment import has_stack
from traindyno.aws.lab_logs import RETENTION_DAYS, LabLogs, LogGroup, LogStream
from traindyno.cli.confirmation import confirm
from traindyno.cli.lab_choice import AccountChoice, ProfileOption, RegionOption
from traindyno.cli.option_values import lab_name
from traindyno.cli.output import tell
from traindyno.core.errors import TraindynoError

app = typer.Typer(
    help="The logs of a lab's jobs and endpoints, which stay after cdk destroy: delete them, or let them expire.",
    no_args_is_help=True,
)
LabArgument = Annotated[str, typer.Argument(help="The lab's name, as it was deployed.", callback=lab_name)]
YesOption = Annotated[bool, typer.Option("--yes", help="Don't ask.")]
DELETIONS_PER_LINE = 500


class LabStillDeployed(TraindynoError):
    """Jobs of the lab may still write to its logs."""


def retention(days: int) -> int:
    if days not in RETENTION_DAYS:
        accepted = ", ".join(map(str, RETENTION_DAYS))
        raise typer.BadParameter(f"CloudWatch Logs has no retention of {days} days; accepted: {accepted}")
    return days


@app.command(epilog="Example: traindyno logs delete traindyno --region us-east-1")
def delete(
    lab: LabArgument, yes: YesOption = False, region: RegionOption = None, profile: ProfileOption = None
) -> None:
    """Delete the logs of a destroyed lab's jobs and endpoints, and of no other lab."""
    logs = _open(lab, region, profile)
    _refuse_deployed(lab)
    streams, groups = logs.streams(), logs.own_groups()
    if not streams and not groups:
        tell(f"lab {lab} has no logs in {_region()}")
        return
    for line in _to_delete(streams, groups):
        tell(line)
    if not yes:
        confirm(f"Delete them in {_region()}?", otherwise="nothing was deleted")
    for number, stream in enumerate(streams, start=1):
        logs.delete_stream(stream)
        if number % DELETIONS_PER_LINE == 0:
            tell(f"{number} of {len(streams)} log streams are deleted")
    for group in groups:
        logs.delete_group(group)
    tell(f"deleted: {len(streams)} log streams, {len(groups)} log groups")


@app.command(epilog="Example: traindyno logs expire traindyno --days 30")
def expire(
    lab: LabArgument,
    days: Annotated[int, typer.Option(help="Events are deleted after this many days.", callback=retention)] = 30,
    account_wide: Annotated[
        bool,
        typer.Option("--account-wide", help="Also the log groups that all SageMaker jobs of the account share."),
    ] = False,
    yes: YesOption = False,
    region: RegionOption = None,
    profile: ProfileOption = None,
) -> None:
    """Let log events of a lab's endpoints expire, and with --account-wide those of every job of the account."""
    logs = _open(lab, region, profile)
    shared = logs.shared_groups()
    found = [*logs.own_groups(), *(shared if account_wide else [])]
    changed = [group for group in found if group.keeps_longer_than(days)]
    for group in [] if account_wide else shared:
        tell(f"not changed: {group.name}, which all jobs of the account share; --account-wide changes it too")
    if not changed:
        tell(f"none of {len(found)} log groups keeps events for more than {days} days")
        return
    for group in changed:
        tell(f"to be changed: {group.name}, {_kept(group)}{', shared by the account' if group in shared else ''}")
    if not yes:
        confirm(f"Delete their events after {days} days in {_region()}?", otherwise="nothing was changed")
    for group in changed:
        logs.expire(group, days)
    tell(f"changed: {len(changed)} log groups; CloudWatch Logs deletes older events within some days")


def _open(lab: str, region: str | None, profile: str | None) -> LabLogs:
    AccountChoice(region=region, profile=profile).choose()
    return LabLogs(clients.logs_with_more_retries(), lab)


def _refuse_deployed(lab: str) -> None:
    if has_stack(clients.cloudformation(), lab):
        raise LabStillDeployed(
            f"lab {lab} is deployed, so its jobs may still write logs: run `cdk destroy` first, or let them expire with"
            f" `traindyno logs expire {lab}`"
        )


def _to_delete(streams: list[LogStream], groups: list[LogGroup]) -> list[str]:
    of_groups = Counter(stream.group for stream in streams)
    first = {stream.group: stream.name for stream in reversed(streams)}
    return [
        *(f"{count} log streams in {group}, such as {first[group]}" for group, count in of_groups.items()),
        *(f"log group {group.name}" for group in groups),
    ]


def _kept(group: LogGroup) -> str:
    return "never expires" if group.retention_days is None else f"expires after {group.retention_days} days"


def _region() -> str:
    return str(clients.cloudformation().meta.region_name)
