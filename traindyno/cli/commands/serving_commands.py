"""`traindyno deploy`, `endpoints` and `undeploy`: the models that runs saved, as endpoints."""

import getpass
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from itertools import cycle, islice
from typing import Annotated, Any

import typer
from rich.table import Table

from traindyno.api.lab_target import LabTarget
from traindyno.aws.client_errors import AwsError
from traindyno.aws.prices import HOSTING, PriceSource
from traindyno.cli.lab_choice import (
    CellOption,
    ExecutionArgument,
    FormatOption,
    LabChoice,
    with_options_of,
)
from traindyno.cli.option_values import finite, matching
from traindyno.cli.option_values import job_name as job_name_option
from traindyno.cli.output import STANDARD_OUTPUT, OutputFormat, print_json, tell, titled_table
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.quantity_text import exact_usd_text, seconds_text, usd_text
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import (
    deployment_key,
    samples_key,
    saved_model_key,
    served_model_key,
    suite_key,
    verdict_key,
)
from traindyno.core.serving.deployment import (
    CREATED_WITHIN_SECONDS,
    NOTICE_SECONDS,
    SERVING_INSTANCE,
    ModelDeployment,
    ModelNotServable,
    deployment_document,
    deployment_name,
    parse_deployment,
)
from traindyno.core.serving.samples import (
    EvaluationSample,
    Latency,
    differences,
    parse_samples,
)
from traindyno.core.serving.servable import why_not_servable
from traindyno.core.suite.preparation import LOCAL_INSTANCE
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.verdict import parse_verdict
from traindyno.lab.end_endpoints import Serving, open_serving, remove_endpoint
from traindyno.lab.environment import BucketEnvironment
from traindyno.sagemaker.serving import ENDPOINT_LOG_GROUP, ServingSettings, build_requests
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket

LOCAL_POLL_SECONDS = 1.0
AWS_POLL_SECONDS = 10.0
FAILURES = (*AwsError, TraindynoError)
# The table of instance types lacks newer types.
INSTANCE = re.compile(
    r"ml\.(?!trn|inf)[a-z][a-z0-9-]*\.(medium|large|\d*xlarge|metal)|local\.(cpu|gpu)"
)
# The first requests are slower: they load the model.
WARMUP_REQUESTS = 5
TIMED_REQUESTS = 100
LONGEST_TIMING_SECONDS = 60.0
MOST_DIFFERENCES = 5
SEQUENTIAL = "with one request at a time"


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
            help="The lab deletes it before it costs more than this many USD, also while this "
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
            help="The endpoint's name, as `traindyno endpoints` shows it.", callback=job_name_option
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


def find_deployable_model(
    execution_id: str, cell: str | None, bucket: ResultsBucket
) -> tuple[Suite, Run, str]:
    """The suite, the run, and the training job that saved its model.

    ``cell`` is a cell's id or label. Raises ModelNotServable with what to do, before anything
    is started.
    """
    suite = bucket.find_as(suite_key(execution_id), read_stored_suite)
    if suite is None:
        raise ModelNotServable(
            f"the lab has no suite of execution {execution_id}: expected an execution that passed "
            "its planning, as `traindyno list` shows it"
        )
    reason = why_not_servable(suite)
    if reason is not None:
        raise ModelNotServable(f"execution {execution_id} has no model to deploy: {reason}")
    results = load_results(bucket, execution_id)
    wanted = cell or _recommended(execution_id, bucket, results)
    of_cell = [
        result for result in results if wanted in (result.run.cell.cell_id, result.run.cell.label)
    ]
    if not of_cell:
        raise ModelNotServable(
            f"execution {execution_id} has no result of cell {wanted}; {_choices(results)}"
        )
    completed = [
        result for result in of_cell if result.outcome is Outcome.COMPLETED and result.attempts
    ]
    if not completed:
        ends = ", ".join(sorted({result.outcome for result in of_cell}))
        raise ModelNotServable(
            f"cell {wanted} of {execution_id}: expected a completed run, found {ends}"
        )
    chosen = max(completed, key=lambda result: result.run.trial)
    job_name = chosen.attempts[-1].job_name
    key = samples_key(execution_id, chosen.run.run_id, job_name)
    samples = bucket.find_as(key, parse_samples)
    if samples is None or not samples.samples:
        raise ModelNotServable(
            f"run {chosen.run.run_id} left no evaluation samples at s3://{bucket.name}/{key}: it "
            "was simulated, shared its job with others, streamed its data without an "
            "evaluation_split, or its data holds no text"
        )
    return suite, chosen.run, job_name


def _recommended(execution_id: str, bucket: ResultsBucket, results: list[RunResult]) -> str:
    verdict = bucket.find_as(verdict_key(execution_id), parse_verdict)
    if verdict is None or verdict.recommended is None:
        why_none = (
            "recommends no cell" if verdict else "has no verdict: it is still running, or it failed"
        )
        raise ModelNotServable(f"execution {execution_id} {why_none}; {_choices(results)}")
    return verdict.recommended


def _choices(results: list[RunResult]) -> str:
    cells = {result.run.cell.cell_id: result.run.cell.label for result in results}
    listed = ", ".join(f"{cell_id} ({label})" for cell_id, label in cells.items())
    return f"name one of its cells with --cell: {listed or 'it has none yet'}"


class AnswersDiffer(TraindynoError):
    """The served model's answers differ from the training job's: it is another model, or it is
    served wrongly.
    """


def deploy_model(
    deployment: ModelDeployment,
    serving: Serving,
    settings: ServingSettings,
    *,
    clock: Callable[[], float],
) -> None:
    """Raises ModelNotServable or DeploymentRefused.

    What was created before that has a record: the caller or a sweep removes it.
    """
    requests = build_requests(deployment, settings)  # refuses before anything is recorded or copied
    name = deployment.name
    bucket = serving.bucket
    bucket.write_json(deployment_key(name), deployment_document(deployment))
    place = (deployment.execution_id, deployment.run_id, deployment.job_name)
    saved = [saved_model_key(*place, is_kept=is_kept) for is_kept in (True, False)]
    if not any(bucket.copy_large(key, served_model_key(name)) for key in saved):
        raise ModelNotServable(
            f"the model of {deployment.job_name} is no longer at s3://{bucket.name}/{saved[-1]}:"
            " large models expire 30 days after their training: run the suite again"
        )
    last = min(deployment.created_at + CREATED_WITHIN_SECONDS, deployment.ends_at)
    if serving.find(name) is None or clock() >= last:
        bucket.delete(served_model_key(name))
        raise ModelNotServable(
            f"{name} was ended, or reached its limit of time, while its model was copied"
        )
    serving.endpoints.create(*requests)


def check_endpoint(
    deployment: ModelDeployment, serving: Serving, *, clock: Callable[[], float] = time.perf_counter
) -> tuple[int, Latency]:
    """How many answers agree, and the latency.

    Raises AnswersDiffer or InvocationFailed. Requests are timed one after another, for at most a
    minute.
    """

    def ask(sample: EvaluationSample) -> bytes:
        return serving.endpoints.ask(
            deployment.name, json.dumps({"inputs": sample.inputs}).encode()
        )

    key = samples_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    samples = serving.bucket.read_as(key, parse_samples).samples
    if different := [*differences(samples, [ask(sample) for sample in samples])]:
        shown = "; ".join(different[:MOST_DIFFERENCES])
        raise AnswersDiffer(
            f"{deployment.name}: {len(different)} answers differ from the training job's: {shown}"
        )
    began = clock()
    seconds = list[float]()
    for sample in islice(cycle(samples), WARMUP_REQUESTS + TIMED_REQUESTS):
        sent = clock()
        ask(sample)
        seconds.append(clock() - sent)
        if clock() - began > LONGEST_TIMING_SECONDS:
            break
    return len(samples), Latency.of(seconds[WARMUP_REQUESTS:] or seconds)


def lines_before(deployment: ModelDeployment) -> Iterator[str]:
    yield (
        f"deploying run {deployment.run_id} of {deployment.execution_id} as endpoint "
        f"{deployment.name}"
    )
    limit = (
        f" (--max-usd {exact_usd_text(deployment.max_usd)})"
        if deployment.max_usd is not None
        else ""
    )
    yield f"on {deployment.instance_type}: {usd_text(deployment.usd_per_hour)} per hour"
    within = f"within {seconds_text(NOTICE_SECONDS)} after {time_text(deployment.ends_at)}"
    yield f"the lab deletes it {within}; it costs {usd_text(deployment.most_usd)} at most{limit}"


def lines_after(deployment: ModelDeployment, samples: int, latency: Latency) -> Iterator[str]:
    yield f"{deployment.name} is in service"
    yield f"{samples} answers agree with the training job's own on its evaluation samples"
    percentiles = (
        f"p50 {seconds_text(latency.p50_seconds)}, p99 {seconds_text(latency.p99_seconds)}"
    )
    yield f"latency of {latency.requests} requests, {SEQUENTIAL}, from this machine: {percentiles}"
    per_hour = deployment.usd_per_hour
    million = usd_text(_usd_per_million_requests(per_hour, latency))
    yield f"cost: {usd_text(per_hour)} per hour, {million} per million requests {SEQUENTIAL}"


def deployments_table(
    deployments: Mapping[str, ModelDeployment], statuses: Mapping[str, str], now: float
) -> Table:
    table = titled_table(
        "endpoints", "name~", "on", "status", "owner", "expires", "per hour", "cost so far"
    )
    for name, deployment in deployments.items():
        costs = usd_text(deployment.usd_per_hour), usd_text(deployment.usd_until(now))
        expires = time_text(deployment.ends_at)
        table.add_row(
            name, deployment.instance_type, statuses[name], deployment.owner, expires, *costs
        )
    return table


def deployment_figures(deployment: ModelDeployment, status: str, now: float) -> dict[str, Any]:
    """Figures of a deployment. Times are epoch seconds; an amount of None is unknown."""
    figures = {"status": status, "ends_at": deployment.ends_at, "most_usd": deployment.most_usd}
    figures_document: dict[str, Any] = to_document(
        {"deployment": deployment, **figures, "spent_usd": deployment.usd_until(now)}
    )
    return figures_document


def time_text(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def _usd_per_million_requests(usd_per_hour: Decimal | None, latency: Latency) -> Decimal | None:
    """The cost at an endpoint that answers one request after the other; None if the price is
    unknown.
    """
    if usd_per_hour is None:
        return None
    return usd_per_hour * Decimal(str(latency.mean_seconds)) * 1_000_000 / SECONDS_PER_HOUR
