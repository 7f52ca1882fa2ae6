"""Compare a served model's answers with those of its training job, and measure an endpoint's latency."""

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any, Protocol

from traindyno.aws.endpoints import Invocations
from traindyno.core.errors import Throttled, TraindynoError
from traindyno.core.s3_keys import s3_uri, samples_key, transform_output_prefix
from traindyno.core.serving.deployment import ModelDeployment, check_job_name
from traindyno.core.serving.latency import Latency, measure_latency
from traindyno.core.serving.samples import EvaluationSample, differences, parse_samples, read_answer, request_of
from traindyno.store.model_deployments import DeploymentRow, DeploymentRows
from traindyno.store.results_bucket import ResultsBucket

# The first requests are slower: they load the model.
WARMUP_REQUESTS = 5
TIMED_REQUESTS = 100
LONGEST_TIMING_SECONDS = 60.0
MOST_DIFFERENCES = 5
# The waits before a throttled request is sent again. After the last one, the state is retried.
WAITS_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
ANSWERS_SUFFIX = ".out"


class CheckEndpointServices(Protocol):
    """``bucket`` holds the samples of the training job, and the answers of a transform job."""

    bucket: ResultsBucket
    deployments: DeploymentRows
    invocations: Invocations


class AnswersDiffer(TraindynoError):
    """The served model's answers differ from the training job's: it is another model, or it is served wrongly."""


def check_endpoint(
    deployment: ModelDeployment,
    *,
    services: CheckEndpointServices,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
    now: float,
) -> DeploymentRow | None:
    """Raises AnswersDiffer, or InvocationFailed if a request is not answered. ``clock``: monotonic seconds."""
    key = samples_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    samples = services.bucket.read_as(key, parse_samples).samples
    if deployment.is_endpoint:
        answers = [_ask_with_retries(deployment.name, sample, services, sleep) for sample in samples]
    else:
        answers = _read_transformed(deployment.name, len(samples), services)
    different = differences(samples, answers)
    if different:
        shown = "; ".join(different[:MOST_DIFFERENCES])
        raise AnswersDiffer(f"{deployment.name}: {len(different)} answers differ from the training job's: {shown}")
    is_timed = deployment.is_endpoint and samples
    latency = _measure(deployment.name, samples, services, clock, sleep) if is_timed else None
    services.deployments.record_check(deployment.name, now=now, checked_samples=len(samples), latency=latency)
    return services.deployments.find(deployment.name)


def _read_transformed(name: str, count: int, services: CheckEndpointServices) -> list[Any]:
    """The output of the check's transform job: one answer on each line, for all samples or for none."""
    prefix = transform_output_prefix(check_job_name(name))
    keys = [key for key in services.bucket.list_keys(prefix) if key.endswith(ANSWERS_SUFFIX)]
    lines = [line for key in keys for line in services.bucket.read(key).decode().splitlines()]
    if len(lines) != count:
        place = s3_uri(services.bucket.name, prefix)
        raise AnswersDiffer(
            f"{name}: expected {count} answers to the evaluation samples below {place}, got {len(lines)}"
        )
    return [read_answer(line) for line in lines]


def _measure(
    name: str,
    samples: tuple[EvaluationSample, ...],
    services: CheckEndpointServices,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Latency | None:
    seconds = list(_timings(name, samples, services, clock, sleep))
    return measure_latency(seconds[WARMUP_REQUESTS:] or seconds) if seconds else None


def _timings(
    name: str,
    samples: tuple[EvaluationSample, ...],
    services: CheckEndpointServices,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> Iterator[float]:
    """The latencies of requests one after another, for at most a minute; a throttled request has none."""
    began = clock()
    for sample in islice(cycle(samples), WARMUP_REQUESTS + TIMED_REQUESTS):
        sent = clock()
        if sent - began > LONGEST_TIMING_SECONDS:
            return
        try:
            _ask(name, sample, services)
        except Throttled:
            sleep(WAITS_SECONDS[0])
        else:
            yield clock() - sent


def _ask_with_retries(
    name: str, sample: EvaluationSample, services: CheckEndpointServices, sleep: Callable[[float], None]
) -> Any:
    for wait_seconds in WAITS_SECONDS:
        try:
            return _ask(name, sample, services)
        except Throttled:
            sleep(wait_seconds)
    return _ask(name, sample, services)


def _ask(name: str, sample: EvaluationSample, services: CheckEndpointServices) -> Any:
    return read_answer(services.invocations.ask(name, request_of(sample).encode()).decode(errors="replace"))
