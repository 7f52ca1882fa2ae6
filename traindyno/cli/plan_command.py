"""`traindyno plan`: what a suite would need, cost and take, and why it would be refused, before anything exists."""

import time
from typing import Any

from traindyno.cli.execution_commands import FormatOption
from traindyno.cli.output import STANDARD_OUTPUT, Format, print_json
from traindyno.cli.plan_history import FoundHistories, find_histories
from traindyno.cli.plan_inputs import PlanInputs, PricesOption, QuotasOption, read_plan_inputs
from traindyno.cli.plan_table import print_plan
from traindyno.cli.run_command import SuiteArgument
from traindyno.cli.suite_loading import load_suite
from traindyno.cli.target import LabOption, LocalOption, ProfileOption, RegionOption, choose_account
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import SuiteRefused
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.planning.refusals import refusal_lines
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.suite import Suite


def plan(
    suite: SuiteArgument,
    local: LocalOption = False,
    lab: LabOption = DEFAULT_LAB,
    region: RegionOption = None,
    profile: ProfileOption = None,
    prices: PricesOption = None,
    quotas: QuotasOption = None,
    output: FormatOption = Format.TABLE,
) -> None:
    """Show a suite's cells, lanes, quotas, cost and time; exit status 2 if it would be refused. Creates nothing."""
    loaded = load_suite(suite)
    histories = FoundHistories(why_none="no lab is asked where both files are given")
    if prices is None or quotas is None:
        choose_account(is_local=local, region=region, profile=profile)
    inputs = read_plan_inputs(
        loaded.suite, expand_cells(loaded.suite), price_path=prices, quota_path=quotas, now=time.time()
    )
    if prices is None or quotas is None:
        histories = find_histories(loaded, beside=suite.parent, lab=DEFAULT_LAB if local else lab)
    planned = plan_suite(
        loaded.suite,
        execution_id=loaded.suite.name,
        prices=inputs.prices,
        quotas=inputs.quotas,
        histories=histories.by_cell,
    )
    if output is Format.JSON:
        print_json(plan_document(loaded.suite, planned, inputs, histories))
    else:
        print_plan(STANDARD_OUTPUT, loaded.suite, planned, inputs, histories)
    if planned.refusals:
        raise SuiteRefused(_refusal_text(planned, f"traindyno quotas request {suite}{' --local' if local else ''}"))


def _refusal_text(planned: Plan, request_command: str) -> list[str]:
    count = len(planned.refusals)
    lines = [line for refusal in planned.refusals for line in refusal_lines(refusal)]
    if any(refusal.increase for refusal in planned.refusals):
        lines.append(f"send what is to be asked for with: {request_command}")
    return [f"refused for {count} {'reason' if count == 1 else 'reasons'}:", *lines]


def plan_document(suite: Suite, planned: Plan, inputs: PlanInputs, histories: FoundHistories) -> dict[str, Any]:
    document: dict[str, Any] = to_document(planned)
    del document["execution_id"]
    return {
        "suite": suite.name,
        "region": inputs.region,
        "is_refused": bool(planned.refusals),
        "limits": to_document(suite.limits),
        **document,
        "quotas": to_document(tuple(inputs.quotas.values())),
        "why_no_history": histories.why_none,
    }
