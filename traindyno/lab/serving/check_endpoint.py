"""Compare an endpoint's answers with those of the training job, and measure its latency."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice

from traindyno.core.errors import Throttled, TraindynoError
from traindyno.core.s3_keys import samples_key
from traindyno.core.serving.deployment import ModelDeployment
from traindyno.core.serving.samples import EvaluationSample, Latency, differences, parse_samples
from traindyno.lab.serving.services import Serving

# The first requests are slower: they load the model.
WARMUP_REQUESTS, TIMED_REQUESTS = 5, 100
LONGEST_TIMING_SECONDS = 60.0
MOST_DIFFERENCES = 5
# The waits before a throttled request is sent again
WAITS_SECONDS = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
Clock = Callable[[], float]
Sleep = Callable[[float], None]


class AnswersDiffer(TraindynoError):
    """The served model's answers differ from the training job's: it is another model, or it is served wrongly."""


def check_endpoint(
    deployment: ModelDeployment, serving: Serving, *, clock: Clock = time.perf_counter, sleep: Sleep = time.sleep
) -> None:
    """Records how many answers agree, and the latency. Raises AnswersDiffer or InvocationFailed."""
    key = samples_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    samples = serving.bucket.read_as(key, parse_samples).samples
    name = deployment.name
    answers = [_ask(name, sample, serving, sleep) for sample in samples]
    different = differences(samples, answers)
    if different:
        shown = "; ".join(different[:MOST_DIFFERENCES])
        raise AnswersDiffer(f"{name}: {len(different)} answers differ from the training job's: {shown}")
    seconds = list(_timings(name, samples, serving, clock, sleep))
    timed = seconds[WARMUP_REQUESTS:] or seconds
    latency = {"latency": Latency.of(timed)} if timed else {}
    serving.deployments.change(name, checked_samples=len(samples), **latency)


def _timings(
    name: str, samples: Sequence[EvaluationSample], serving: Serving, clock: Clock, sleep: Sleep
) -> Iterator[float]:
    """The latencies of requests one after another, for at most a minute; a throttled request has none."""
    began = clock()
    for sample in islice(cycle(samples), WARMUP_REQUESTS + TIMED_REQUESTS):
        sent = clock()
        if sent - began > LONGEST_TIMING_SECONDS:
            return
        try:
            serving.endpoints.ask(name, _request(sample))
        except Throttled:
            sleep(WAITS_SECONDS[0])
        else:
            yield clock() - sent


def _ask(name: str, sample: EvaluationSample, serving: Serving, sleep: Sleep) -> bytes:
    for wait_seconds in WAITS_SECONDS:
        try:
            return serving.endpoints.ask(name, _request(sample))
        except Throttled:
            sleep(wait_seconds)
    return serving.endpoints.ask(name, _request(sample))


def _request(sample: EvaluationSample) -> bytes:
    return json.dumps({"inputs": sample.inputs}).encode()
