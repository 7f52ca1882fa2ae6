"""`traindyno plan`: a suite's cells, quotas, cost, time and reasons to refuse it, before anything
is created.
"""

from typing import Any

from traindyno.api.plans import PlannedSuite, plan_in_account, require_accepted
from traindyno.api.suite_loading import load_startable_suite
from traindyno.cli.display.plan_table import print_plan
from traindyno.cli.display.plan_totals import jobs_of_plan
from traindyno.cli.inputs.plan_options import (
    AlsoSendOption,
    NoMemoryOption,
    PricesOption,
    QuotasOption,
)
from traindyno.cli.lab_choice import FormatOption, LabChoice, SuiteArgument, with_options_of
from traindyno.cli.option_rules import refuse
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, tell
from traindyno.core.documents.stored import to_document
from traindyno.travelling_files import allowed_paths


@with_options_of(
    LabChoice,
    refuse(
        "local",
        "lab",
        "region",
        "profile",
        beside=("prices", "quotas"),
        why="with both files the plan reads no lab and no account",
    ),
)
def plan(
    choice: LabChoice,
    suite: SuiteArgument,
    prices: PricesOption = None,
    quotas: QuotasOption = None,
    no_memory: NoMemoryOption = False,
    also_send: AlsoSendOption = None,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show a suite's cells, quotas, cost and time, and whether it can start. Creates nothing.

    Exit status 2 if the lab would refuse the suite, with the reasons.
    """
    loaded = load_startable_suite(suite, local=choice.local)
    allowed = allowed_paths(also_send or ())
    if prices is None or quotas is None:
        choice.choose()
    planned = plan_in_account(
        loaded,
        lab=choice.chosen.name,
        prices=prices,
        quotas=quotas,
        memory=not no_memory,
        allowed=allowed,
        say=tell,
    )
    lines = [*planned.files, *loaded.lines]
    if output is OutputFormat.JSON:
        for line in lines:
            tell(line)
        print_json(plan_document(planned))
    else:
        why_none = planned.histories.why_none
        print_plan(
            STANDARD_OUTPUT, loaded.suite, planned.plan, planned.inputs, why_no_history=why_none
        )
        for line in lines:
            STANDARD_OUTPUT.print(line)
        if not planned.is_refused:
            STANDARD_OUTPUT.print(_start_text(planned, is_given=bool(prices or quotas)))
    require_accepted(planned.plan)


def _start_text(planned: PlannedSuite, *, is_given: bool) -> str:
    if is_given or planned.inputs.why_assumed is not None:
        return "can start, if the account has these quotas: nothing else stands in the way"
    return "can start: nothing stands in the way"


def plan_document(planned: PlannedSuite) -> dict[str, Any]:
    jobs = [to_document(job) for job in jobs_of_plan(planned.suite.suite, planned.plan)]
    return {**planned.document(), "jobs": jobs}
