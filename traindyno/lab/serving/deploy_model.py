"""From a trained model to an endpoint whose answers are those of the training job."""

import json
import time
from collections.abc import Callable
from itertools import cycle, islice

from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import deployment_key, samples_key, saved_model_key, served_model_key
from traindyno.core.serving.deployment import (
    CREATED_WITHIN_SECONDS,
    ModelDeployment,
    ModelNotServable,
    deployment_document,
)
from traindyno.core.serving.samples import EvaluationSample, Latency, differences, parse_samples
from traindyno.lab.serving.end_endpoints import Serving
from traindyno.sagemaker.serving import ServingSettings, build_requests

# The first requests are slower: they load the model.
WARMUP_REQUESTS, TIMED_REQUESTS = 5, 100
LONGEST_TIMING_SECONDS = 60.0
MOST_DIFFERENCES = 5


class AnswersDiffer(TraindynoError):
    """The served model's answers differ from the training job's: it is another model, or it is served wrongly."""


def deploy_model(
    deployment: ModelDeployment, serving: Serving, settings: ServingSettings, *, clock: Callable[[], float]
) -> None:
    """Raises ModelNotServable or DeploymentRefused. What was created before that has a record: the caller or a sweep
    removes it.
    """
    requests = build_requests(deployment, settings)  # refuses before anything is recorded or copied
    name, bucket = deployment.name, serving.bucket
    bucket.write_json(deployment_key(name), deployment_document(deployment))
    saved = saved_model_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    if not bucket.copy_large(saved, served_model_key(name)):
        raise ModelNotServable(
            f"the model of {deployment.job_name} is no longer at s3://{bucket.name}/{saved}:"
            " large models expire 30 days after their training: run the suite again"
        )
    last = min(deployment.created_at + CREATED_WITHIN_SECONDS, deployment.ends_at)
    if serving.find(name) is None or clock() >= last:
        bucket.delete(served_model_key(name))
        raise ModelNotServable(f"{name} was ended, or reached its limit of time, while its model was copied")
    serving.endpoints.create(*requests)


def check_endpoint(
    deployment: ModelDeployment, serving: Serving, *, clock: Callable[[], float] = time.perf_counter
) -> tuple[int, Latency]:
    """How many answers agree, and the latency. Raises AnswersDiffer or InvocationFailed. Requests are timed one after
    another, for at most a minute.
    """

    def ask(sample: EvaluationSample) -> bytes:
        return serving.endpoints.ask(deployment.name, json.dumps({"inputs": sample.inputs}).encode())

    key = samples_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    samples = serving.bucket.read_as(key, parse_samples).samples
    if different := [*differences(samples, [ask(sample) for sample in samples])]:
        shown = "; ".join(different[:MOST_DIFFERENCES])
        raise AnswersDiffer(f"{deployment.name}: {len(different)} answers differ from the training job's: {shown}")
    began, seconds = clock(), list[float]()
    for sample in islice(cycle(samples), WARMUP_REQUESTS + TIMED_REQUESTS):
        sent = clock()
        ask(sample)
        seconds.append(clock() - sent)
        if clock() - began > LONGEST_TIMING_SECONDS:
            break
    return len(samples), Latency.of(seconds[WARMUP_REQUESTS:] or seconds)
