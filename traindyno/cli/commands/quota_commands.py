"""`traindyno quotas`: request the quotas that a suite needs, once, and show the status of the requests."""

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.table import Table

from traindyno.api.plan_inputs import account_region, read_quotas
from traindyno.api.suite_loading import load_suite
from traindyno.aws import clients
from traindyno.aws.quota_requests import QuotaRequests
from traindyno.cli.confirmation import confirm
from traindyno.cli.lab_choice import AccountChoice, FormatOption, SuiteArgument, with_options_of
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, tell
from traindyno.core.documents.stored import to_document
from traindyno.core.planning.plan import plan_suite
from traindyno.core.planning.quota_increases import NeededIncrease, RequestedIncrease, needed_increases
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.suite import Suite

app = typer.Typer(help="The quotas that a suite needs: request increases, show their status.", no_args_is_help=True)
YesOption = Annotated[bool, typer.Option("--yes", help="Send without asking.")]


@app.command(epilog="Example: traindyno quotas request suites/quickstart.yaml")
@with_options_of(AccountChoice)
def request(
    choice: AccountChoice,
    suite: SuiteArgument,
    yes: YesOption = False,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Send an increase request for each quota that the suite lacks; no second request while one is open."""
    loaded = load_suite(suite)
    choice.choose()
    requests = QuotaRequests(clients.service_quotas())
    needed = _look_up(loaded.staged, requests)
    to_send = [each for each in needed if each.is_to_send]
    if to_send and not yes:
        _confirm(to_send)
    answered = []
    for each in needed:
        answer, is_sent = requests.send(each) if each.is_to_send else (each, False)
        if is_sent:
            tell(f"sent: {each.increase.name}, {each.increase.desired_value}")
        answered.append(answer)
    _print(answered, output)


@app.command(epilog="Example: traindyno quotas status suites/quickstart.yaml")
@with_options_of(AccountChoice)
def status(
    choice: AccountChoice,
    suite: SuiteArgument,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show the quotas that the suite lacks and the status of their requests."""
    loaded = load_suite(suite)
    choice.choose()
    _print(_look_up(loaded.staged, QuotaRequests(clients.service_quotas())), output)


def _look_up(suite: Suite, requests: QuotaRequests) -> list[NeededIncrease]:
    readings = read_quotas(suite, expand_cells(suite), now=time.time())
    planned = plan_suite(suite, execution_id=suite.name, prices={}, quotas=readings, histories={})
    return [requests.look_up(increase) for increase in needed_increases(planned.refusals)]


def _confirm(to_send: Sequence[NeededIncrease]) -> None:
    tell(f"to be requested in {account_region()}:")
    for each in to_send:
        change = f"from {each.increase.current_value} to {each.increase.desired_value}"
        tell(f"  {each.increase.name} ({each.increase.code}) {change}")
    confirm("Send?", otherwise="nothing was sent")


def _print(needed: Sequence[NeededIncrease], output: OutputFormat) -> None:
    if output is OutputFormat.JSON:
        print_json([{**to_document(each), "next_step": each.next_step} for each in needed])
        return
    if not needed:
        STANDARD_OUTPUT.print("the account's quotas allow every run of this suite")
        return
    table = Table("quota", "code", "now", "needed", "request", "next", pad_edge=False)
    for each in needed:
        increase = each.increase
        current, desired = str(increase.current_value), str(increase.desired_value)
        table.add_row(
            increase.name, increase.code or "unknown", current, desired, _request_text(each.request), each.next_step
        )
    STANDARD_OUTPUT.print(table)


def _request_text(request: RequestedIncrease | None) -> str:
    if request is None:
        return "none"
    day = datetime.fromtimestamp(request.requested_at, UTC).date().isoformat()
    case = f", case {request.case_id}" if request.case_id else ""
    return f"{request.status.value}: {request.desired_value}, {day}{case}"
