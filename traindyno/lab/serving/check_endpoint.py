"""Compare an endpoint's answers with those of the training job, and measure its latency."""

import json
import time
from collections.abc import Callable
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


class AnswersDiffer(TraindynoError):
    """The served model's answers differ from the training job's: it is another model, or it is served wrongly."""


def check_endpoint(
    deployment: ModelDeployment,
    serving: Serving,
    *,
    clock: Callable[[], float] = time.perf_counter,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[int, Latency | None]:
    """How many answers agree, and the latency. Raises AnswersDiffer or InvocationFailed. Requests are timed one after
    another, for at most a minute.
    """

    def ask(sample: EvaluationSample) -> tuple[bytes, float]:
        """The answer, and the seconds of the request that was answered."""
        for wait_seconds in (*WAITS_SECONDS, None):
            sent = clock()
            try:
                answer = serving.endpoints.ask(deployment.name, json.dumps({"inputs": sample.inputs}).encode())
                return answer, clock() - sent
            except Throttled:
                if wait_seconds is None:
                    raise
                sleep(wait_seconds)
        raise AssertionError

    key = samples_key(deployment.execution_id, deployment.run_id, deployment.job_name)
    samples = serving.bucket.read_as(key, parse_samples).samples
    different = differences(samples, [ask(sample)[0] for sample in samples])
    if different:
        shown = "; ".join(different[:MOST_DIFFERENCES])
        raise AnswersDiffer(f"{deployment.name}: {len(different)} answers differ from the training job's: {shown}")
    began, seconds = clock(), list[float]()
    for sample in islice(cycle(samples), WARMUP_REQUESTS + TIMED_REQUESTS):
        if clock() - began > LONGEST_TIMING_SECONDS:
            break
        seconds.append(ask(sample)[1])
    timed = seconds[WARMUP_REQUESTS:] or seconds
    return len(samples), Latency.of(timed) if timed else None
