"""`traindyno plan`: a suite's cells, quotas, cost, time and reasons to refuse it, before anything is created."""

import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import typer
from botocore.exceptions import ClientError

from traindyno.aws import clients
from traindyno.aws.client_errors import error_code, is_access_denied
from traindyno.aws.deployment import LabNotDeployed, find_deployment
from traindyno.cli.display.composition_table import print_compositions
from traindyno.cli.display.job_table import jobs_document
from traindyno.cli.display.plan_table import print_plan
from traindyno.cli.display.region_table import print_regions
from traindyno.cli.inputs.also_send import AlsoSendOption, read_also_send
from traindyno.cli.inputs.dataset_lines import data_lines
from traindyno.cli.inputs.local_paths import StagingRefused, travel_lines
from traindyno.cli.inputs.memory_estimates import (
    CompositionsOption,
    MemoryOption,
    estimate_cells,
    estimate_compositions,
)
from traindyno.cli.inputs.plan_inputs import (
    PlanInputs,
    PricesOption,
    QuotasOption,
    SpotDiscountOption,
    SpotInterruptionsOption,
    read_plan_inputs,
    read_spot_assumption,
)
from traindyno.cli.inputs.region_comparison import RegionsOption, compare_regions, split_regions
from traindyno.cli.inputs.sample_data import SampleUnknown
from traindyno.cli.inputs.staging import StagingArea
from traindyno.cli.inputs.suite_loading import LoadedSuite, load_startable_suite
from traindyno.cli.lab_choice import FormatOption, LabChoice, SuiteArgument, with_options_of
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, tell
from traindyno.core.costs.spot import SpotAssumption, at_risk_seconds
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import SuiteRefused
from traindyno.core.planning.history import Histories, learn_from
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.planning.refusals import Refusal, refusal_lines
from traindyno.core.suite.cells import baseline_cell, expand_cells
from traindyno.core.suite.checks.accepted_suite import parse_suite
from traindyno.core.suite.suite import Suite
from traindyno.lab.environment import BucketEnvironment
from traindyno.lab.services import open_services
from traindyno.sagemaker.images import unavailable_images
from traindyno.store.past_runs import read_past_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHistories:
    """Earlier runs of the suite's cells; ``why_none`` says why none could be read."""

    by_cell: Histories = field(default_factory=dict)
    why_none: str | None = None


@with_options_of(LabChoice)
def plan(
    choice: LabChoice,
    suite: SuiteArgument,
    prices: PricesOption = None,
    quotas: QuotasOption = None,
    memory: MemoryOption = False,
    compositions: CompositionsOption = False,
    regions: RegionsOption = None,
    spot_discount: SpotDiscountOption = None,
    spot_interruptions: SpotInterruptionsOption = None,
    also_send: AlsoSendOption = None,
    output: FormatOption = OutputFormat.TABLE,
) -> None:
    """Show a suite's cells, lanes, quotas, cost and time; exit status 2 if it would be refused. Creates nothing."""
    loaded = load_startable_suite(suite)
    allowed = read_also_send(also_send)
    reads = data_lines(loaded.suite, beside=suite.parent, allowed=allowed)
    cells = expand_cells(loaded.suite)
    if regions is not None:
        if prices is not None or quotas is not None:
            raise typer.BadParameter("--regions can't be combined with --prices or --quotas, which are of one region")
        choice.choose()
        found = compare_regions(loaded.suite, cells, split_regions(regions), now=time.time())
        print_regions(loaded.suite.name, found, output)
        return
    spot = read_spot_assumption(spot_discount, spot_interruptions)
    histories = FoundHistories(why_none="--prices and --quotas are given, so no lab is read")
    if prices is None or quotas is None:
        choice.choose()
    inputs = read_plan_inputs(loaded.staged, cells, price_path=prices, quota_path=quotas, now=time.time())
    if prices is None or quotas is None:
        histories = _find_histories(loaded, beside=suite.parent, lab=choice.deployed_name, allowed=allowed)
    planned = plan_suite(
        loaded.staged,
        execution_id=loaded.suite.name,
        prices=inputs.prices,
        quotas=inputs.quotas,
        histories=histories.by_cell,
        memory=estimate_cells(loaded.suite, beside=suite.parent, say=tell) if memory else (),
    )
    planned = _with_unavailable_images(planned, loaded.suite, inputs.region)
    proposals = estimate_compositions(loaded.suite, beside=suite.parent, say=tell) if compositions else ()
    told = [*travel_lines(loaded.document["workload"], beside=suite.parent, allowed=allowed), *reads]
    if output is OutputFormat.JSON:
        for line in told:
            tell(line)
        print_json(
            {**plan_document(loaded.suite, planned, inputs, histories, spot), "compositions": to_document(proposals)}
        )
    else:
        print_plan(STANDARD_OUTPUT, loaded.suite, planned, inputs, why_no_history=histories.why_none, spot=spot)
        if compositions:
            print_compositions(STANDARD_OUTPUT, baseline_cell(loaded.suite), proposals)
        for line in told:
            STANDARD_OUTPUT.print(line)
    if planned.refusals:
        local = " --local" if choice.local else ""
        raise SuiteRefused(_refusal_text(planned, f"traindyno quotas request {suite}{local}"))


def _with_unavailable_images(planned: Plan, suite: Suite, region: str | None) -> Plan:
    unavailable = unavailable_images(planned.cells, suite.workload, region) if region else ()
    return replace(planned, refusals=(*planned.refusals, *(Refusal(reason=reason) for reason in unavailable)))


def _find_histories(loaded: LoadedSuite, *, beside: Path, lab: str, allowed: Collection[Path] = ()) -> FoundHistories:
    """Reads the lab's table; writes nothing."""
    try:
        deployment = find_deployment(clients.cloudformation(), lab)
        stage = StagingArea(
            beside=beside, s3=clients.s3(), bucket=deployment.bucket, tell=tell, sends=False, allowed=allowed
        )
        suite = parse_suite(stage.stage_suite(loaded.document))
        services = open_services(
            BucketEnvironment(lab=deployment.lab, table=deployment.table, bucket=deployment.bucket)
        )
        past = read_past_runs(suite, index=services.work_index, executions=services.executions, runs=services.runs)
        return FoundHistories(by_cell=learn_from(suite, past))
    except (LabNotDeployed, StagingRefused, SampleUnknown) as error:
        return FoundHistories(why_none=str(error))
    except ClientError as error:
        if is_access_denied(error):
            return FoundHistories(why_none=f"{error_code(error)} in {error.operation_name} of lab {lab}")
        raise


def _refusal_text(planned: Plan, request_command: str) -> list[str]:
    count = len(planned.refusals)
    lines = [line for refusal in planned.refusals for line in refusal_lines(refusal)]
    if any(refusal.increase for refusal in planned.refusals):
        lines.append(f"send the increase requests with: {request_command}")
    return [f"refused for {count} {'reason' if count == 1 else 'reasons'}:", *lines]


def plan_document(
    suite: Suite, planned: Plan, inputs: PlanInputs, histories: FoundHistories, spot: SpotAssumption | None = None
) -> dict[str, Any]:
    document: dict[str, Any] = to_document(planned)
    del document["execution_id"]
    return {
        "suite": suite.name,
        "region": inputs.region,
        "is_refused": bool(planned.refusals),
        "limits": to_document(suite.limits),
        **document,
        "jobs": jobs_document(suite, planned),
        "quotas": to_document(tuple(inputs.quotas.values())),
        "why_no_history": histories.why_none,
        "spot": _spot_document(suite, planned, spot),
    }


def _spot_document(suite: Suite, planned: Plan, assumed: SpotAssumption | None) -> dict[str, Any] | None:
    """The cost of one attempt of every run under the assumptions; None without any."""
    if assumed is None:
        return None
    once = planned.one_attempt_usd
    usd = None if once is None else assumed.usd(once, at_risk_seconds(suite))
    return {"assumed": to_document(assumed), "one_attempt_usd": to_document(usd)}
