"""A saved model as an endpoint: whose run it is, its creation, whether it answers as the training
job did, and how fast.
"""

import json
import time
from collections.abc import Callable
from itertools import cycle, islice

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
    ModelDeployment,
    ModelNotServable,
    deployment_document,
)
from traindyno.core.serving.samples import (
    EvaluationSample,
    Latency,
    differences,
    parse_samples,
)
from traindyno.core.serving.servable import why_not_servable
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.verdict import parse_verdict
from traindyno.lab.end_endpoints import Serving
from traindyno.sagemaker.serving import ServingSettings, build_requests
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket

# The first requests are slower: they load the model.
WARMUP_REQUESTS = 5
TIMED_REQUESTS = 100
LONGEST_TIMING_SECONDS = 60.0
MOST_DIFFERENCES = 5


class AnswersDiffer(TraindynoError):
    """The served model's answers differ from the training job's: it is another model, or it is
    served wrongly.
    """


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
