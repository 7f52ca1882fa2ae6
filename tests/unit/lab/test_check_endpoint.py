from collections.abc import Iterator

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, MemoryServing
from traindyno.aws.endpoints import InvocationFailed
from traindyno.lab.check_endpoint import AnswersDiffer, check_endpoint
from traindyno.store.model_deployments import DeploymentRow, DeploymentStatus


@pytest.fixture
def serving() -> MemoryServing:
    serving = MemoryServing()
    serving.deployments.create(
        DeploymentRow(deployment=DEPLOYMENT, status=DeploymentStatus.READY, created_at=NOW, token="t")
    )
    return serving


def ticking(step_seconds: float) -> Iterator[float]:
    at = 0.0
    while True:
        yield at
        at += step_seconds


def test_answers_are_compared_and_the_latency_of_a_hundred_requests_is_kept(serving: MemoryServing) -> None:
    clock = ticking(0.02)
    row = check_endpoint(DEPLOYMENT, services=serving, clock=lambda: next(clock))
    assert row is not None
    assert row.latency is not None
    assert row.checked_samples == 2
    assert row.latency.requests == 100
    assert row.latency.p50_seconds == pytest.approx(0.02)
    # 2 samples once, 5 requests to warm up, 100 that are timed
    assert len(serving.invocations.asked) == 107


def test_timing_a_slow_endpoint_ends_after_a_minute(serving: MemoryServing) -> None:
    clock = ticking(5.0)
    row = check_endpoint(DEPLOYMENT, services=serving, clock=lambda: next(clock))
    assert row is not None
    assert row.latency is not None
    assert 0 < row.latency.requests < 10


def test_an_answer_that_is_not_the_training_jobs_is_refused_and_not_recorded(serving: MemoryServing) -> None:
    serving.invocations.wrong = {"bad"}
    with pytest.raises(AnswersDiffer, match=r"'a bad film'.*expected 'bad' with probability 0.900, got 0.500"):
        check_endpoint(DEPLOYMENT, services=serving, clock=lambda: 0.0)
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.checked_samples is None


def test_an_endpoint_that_does_not_answer_is_refused(serving: MemoryServing) -> None:
    serving.invocations.fails = True
    with pytest.raises(InvocationFailed):
        check_endpoint(DEPLOYMENT, services=serving, clock=lambda: 0.0)
