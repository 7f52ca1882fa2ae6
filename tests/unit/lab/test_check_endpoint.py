import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.unit.lab_in_memory import NOW, no_sleep
from tests.unit.serving_in_memory import (
    DEPLOYMENT,
    NAME,
    NEW,
    READY,
    MemoryServing,
    ScriptedEndpoints,
    ScriptedInvocations,
)
from traindyno.aws.endpoints import InvocationFailed
from traindyno.core.errors import Throttled
from traindyno.core.s3_keys import transform_output_prefix
from traindyno.core.serving.deployment import Hosting, check_job_name
from traindyno.lab.serving.check_endpoint import AnswersDiffer, check_endpoint
from traindyno.store.model_deployments import DeploymentRow, DeploymentStatus


@pytest.fixture
def serving() -> MemoryServing:
    serving = MemoryServing()
    serving.deployments.create(
        DeploymentRow(deployment=DEPLOYMENT, status=DeploymentStatus.READY, created_at=NOW, token="t")
    )
    serving.endpoints.hosted[NAME] = READY
    return serving


def ticking(step_seconds: float) -> Iterator[float]:
    at = 0.0
    while True:
        yield at
        at += step_seconds


def test_answers_are_compared_and_the_latency_of_a_hundred_requests_is_kept(serving: MemoryServing) -> None:
    clock = ticking(0.02)
    row = check_endpoint(DEPLOYMENT, services=serving.services, clock=lambda: next(clock), sleep=no_sleep, now=NOW)
    assert row is not None
    assert row.latency is not None
    assert row.checked_samples == 2
    assert row.latency.requests == 100
    assert row.latency.p50_seconds == pytest.approx(0.02)
    # 2 samples once, 5 requests to warm up, 100 that are timed
    assert len(serving.invocations.asked) == 107
    assert row.checked_at == NOW


def test_timing_a_slow_endpoint_ends_after_a_minute(serving: MemoryServing) -> None:
    clock = ticking(5.0)
    row = check_endpoint(DEPLOYMENT, services=serving.services, clock=lambda: next(clock), sleep=no_sleep, now=NOW)
    assert row is not None
    assert row.latency is not None
    assert 0 < row.latency.requests < 10


def test_an_answer_that_is_not_the_training_jobs_is_refused_and_not_recorded(serving: MemoryServing) -> None:
    serving.invocations.wrong = {"bad"}
    with pytest.raises(AnswersDiffer, match=r"'a bad film'.*got 0.500, expected 'bad' with probability 0.900"):
        check_endpoint(DEPLOYMENT, services=serving.services, clock=lambda: 0.0, sleep=no_sleep, now=NOW)
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.checked_samples is None


def test_an_endpoint_that_does_not_answer_is_refused(serving: MemoryServing) -> None:
    serving.endpoints.hosted[NAME] = NEW
    with pytest.raises(InvocationFailed):
        check_endpoint(DEPLOYMENT, services=serving.services, clock=lambda: 0.0, sleep=no_sleep, now=NOW)


def test_an_answer_that_is_no_json_is_refused_with_its_text(
    serving: MemoryServing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving.invocations, "ask", lambda _name, _body: b"<html>busy</html>")
    with pytest.raises(AnswersDiffer, match="got <html>busy</html>, expected an object with predictions"):
        check_endpoint(DEPLOYMENT, services=serving.services, clock=lambda: 0.0, sleep=no_sleep, now=NOW)


class ThrottledInvocations(ScriptedInvocations):
    """Every second request is refused, with the error that tests/unit/aws/test_endpoints.py shows for a busy endpoint.
    ``waited`` are the waits before its repetition.
    """

    def __init__(self, endpoints: ScriptedEndpoints) -> None:
        super().__init__(endpoints)
        self.waited: list[float] = []
        self._count = 0

    def ask(self, endpoint_name: str, body: bytes) -> bytes:
        self._count += 1
        if self._count % 2:
            raise Throttled("slow down")
        return super().ask(endpoint_name, body)


def test_throttled_requests_are_sent_again_and_are_not_timed(serving: MemoryServing) -> None:
    serving.invocations = throttled = ThrottledInvocations(serving.endpoints)
    clock = ticking(0.02)
    row = check_endpoint(
        DEPLOYMENT, services=serving.services, clock=lambda: next(clock), sleep=throttled.waited.append, now=NOW
    )
    assert row is not None
    assert row.latency is not None
    # Every second of 105 requests for the latency is answered, and 5 of those warm up.
    assert (row.checked_samples, row.latency.requests) == (2, 47)
    assert throttled.waited == [1.0] * 55


TRANSFORM = replace(DEPLOYMENT, hosting=Hosting.TRANSFORM, input_s3_uri="s3://results/data/x/")


def transformed(*scores: float) -> MemoryServing:
    """The check's job has written these scores for the words of the samples."""
    serving = MemoryServing()
    serving.deployments.create(
        DeploymentRow(deployment=TRANSFORM, status=DeploymentStatus.CREATING, created_at=NOW, token="t")
    )
    answers = [
        {"predictions": [{"label": word, "score": score}, {"label": "other", "score": 1 - score}]}
        for word, score in zip(("good", "bad"), scores, strict=False)
    ]
    key = f"{transform_output_prefix(check_job_name(NAME))}evaluation_samples.jsonl.out"
    serving.objects.contents[key] = "".join(json.dumps(answer) + "\n" for answer in answers).encode()
    return serving


def test_the_lines_of_a_transform_job_are_compared_and_none_is_timed() -> None:
    row = check_endpoint(
        TRANSFORM, services=transformed(0.9, 0.89).services, clock=lambda: 0.0, sleep=no_sleep, now=NOW
    )
    assert row is not None
    assert (row.checked_samples, row.checked_at, row.latency) == (2, NOW, None)


@pytest.mark.parametrize(
    ("scores", "problem"),
    [
        ((0.9, 0.6), r"'a bad film'.*got 0.600, expected 'bad' with probability 0.900"),
        ((0.9,), r"expected 2 answers to the evaluation samples below s3://results/transforms/.*-check/, got 1"),
    ],
)
def test_a_transform_job_that_answers_otherwise_is_refused(scores: tuple[float, ...], problem: str) -> None:
    serving = transformed(*scores)
    with pytest.raises(AnswersDiffer, match=problem):
        check_endpoint(TRANSFORM, services=serving.services, clock=lambda: 0.0, sleep=no_sleep, now=NOW)
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.checked_samples is None
