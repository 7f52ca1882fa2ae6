"""Ask a new endpoint for the training job's own evaluation samples, compare the answers, and measure the latency."""

import json
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.s3_keys import samples_key
from traindyno.core.serving.deployment import ModelDeployment
from traindyno.core.serving.latency import Latency, measure_latency
from traindyno.core.serving.samples import EvaluationSample, differences, parse_samples
from traindyno.lab.services import LabServices
from traindyno.store.model_deployments import DeploymentRow

# The first requests load what later ones find loaded.
WARMUP_REQUESTS = 5
TIMED_REQUESTS = 100
LONGEST_TIMING_SECONDS = 60.0
MOST_DIFFERENCES = 5


class AnswersDiffer(TraindynoError):
    """The endpoint does not answer as the training job's model did: it is not that model, or not served rightly."""


def check_endpoint(
    deployment: ModelDeployment, *, services: LabServices, clock: Callable[[], float]
) -> DeploymentRow | None:
    """Raises AnswersDiffer, or InvocationFailed where a request is not answered. ``clock``: monotonic seconds."""
    key = samples_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    samples = parse_samples(services.bucket.read_json(key)).samples
    answers = [_ask(deployment.name, sample, services) for sample in samples]
    different = differences(samples, answers)
    if different:
        shown = "; ".join(different[:MOST_DIFFERENCES])
        raise AnswersDiffer(f"{deployment.name}: {len(different)} answers differ from the training job's: {shown}")
    latency = _measure(deployment.name, samples, services, clock) if samples else None
    services.deployments.record_check(deployment.name, checked_samples=len(samples), latency=latency)
    return services.deployments.find(deployment.name)


def _measure(
    name: str, samples: tuple[EvaluationSample, ...], services: LabServices, clock: Callable[[], float]
) -> Latency:
    seconds = list(_timings(name, samples, services, clock))
    return measure_latency(seconds[WARMUP_REQUESTS:] or seconds)


def _timings(
    name: str, samples: tuple[EvaluationSample, ...], services: LabServices, clock: Callable[[], float]
) -> Iterator[float]:
    """Of requests one after another, for at most a minute."""
    began = clock()
    for sample in islice(cycle(samples), WARMUP_REQUESTS + TIMED_REQUESTS):
        sent = clock()
        if sent - began > LONGEST_TIMING_SECONDS:
            return
        _ask(name, sample, services)
        yield clock() - sent


def _ask(name: str, sample: EvaluationSample, services: LabServices) -> Any:
    return json.loads(services.invocations.ask(name, json.dumps({"inputs": sample.inputs}).encode()))
