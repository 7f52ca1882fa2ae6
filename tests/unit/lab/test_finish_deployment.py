from dataclasses import replace

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, NEW, READY, MemoryServing
from traindyno.core.serving.deployment import Hosting, check_job_name
from traindyno.lab.serving.finish_deployment import finish_deployment
from traindyno.sagemaker.serving.serving_description import ENDPOINT_LOG_GROUP, TRANSFORM_LOG_GROUP, ServingState
from traindyno.store.model_deployments import DeploymentRow, DeploymentStatus

LOG_GROUP = f"{ENDPOINT_LOG_GROUP}/{NAME}"
LINES = ["loading the model", "RuntimeError: no weights"]


@pytest.fixture
def serving() -> MemoryServing:
    return with_row()


def with_row(hosting: Hosting = Hosting.ENDPOINT) -> MemoryServing:
    serving = MemoryServing()
    deployment = replace(DEPLOYMENT, hosting=hosting, instance_count=2 if hosting is Hosting.TRANSFORM else 1)
    serving.deployments.create(
        DeploymentRow(deployment=deployment, status=DeploymentStatus.CREATING, created_at=NOW, token="t")
    )
    return serving


def row_of(serving: MemoryServing) -> DeploymentRow:
    row = serving.deployments.find(NAME)
    assert row is not None
    return row


def test_an_endpoint_in_service_answers_the_task_and_is_ready(serving: MemoryServing) -> None:
    serving.endpoints.hosted[NAME] = READY
    assert finish_deployment(NAME, services=serving.services, now=NOW + 90) is DeploymentStatus.READY
    assert [(token, kind) for token, kind, _ in serving.answers.given] == [("t", "success")]
    assert (row_of(serving).status, row_of(serving).ready_at) == (DeploymentStatus.READY, NOW + 90)


def test_an_endpoint_that_is_still_created_answers_nothing(serving: MemoryServing) -> None:
    serving.endpoints.hosted[NAME] = NEW
    assert finish_deployment(NAME, services=serving.services, now=NOW) is None
    assert serving.answers.given == []


def test_a_failed_endpoint_says_why_with_the_containers_last_lines(serving: MemoryServing) -> None:
    reason = "The primary container did not pass the ping health check."
    serving.endpoints.hosted[NAME] = ServingState(is_ready=False, failure=reason)
    serving.logs.write("AllTraffic/i-1", LINES, 0, LOG_GROUP)
    finish_deployment(NAME, services=serving.services, now=NOW)
    ((_, name, cause),) = serving.answers.given
    assert name == "DeploymentFailed"
    assert cause == f"{reason}\nloading the model\nRuntimeError: no weights"
    assert row_of(serving).message == cause


def test_lines_that_the_reason_holds_already_are_not_said_twice(serving: MemoryServing) -> None:
    serving.endpoints.hosted[NAME] = ServingState(is_ready=False, failure="ended: RuntimeError: no weights")
    serving.logs.write("AllTraffic/i-1", LINES, 0, LOG_GROUP)
    finish_deployment(NAME, services=serving.services, now=NOW)
    assert row_of(serving).message == "ended: RuntimeError: no weights"


def test_an_answer_that_was_lost_is_given_again_until_the_endpoint_is_checked(serving: MemoryServing) -> None:
    serving.endpoints.hosted[NAME] = READY
    finish_deployment(NAME, services=serving.services, now=NOW)
    lose_answers(serving)
    finish_deployment(NAME, services=serving.services, now=NOW + 1)
    assert [kind for _, kind, _ in serving.answers.given] == ["success"]
    assert row_of(serving).ready_at == NOW
    serving.deployments.record_check(NAME, now=NOW, checked_samples=2, latency=None)
    lose_answers(serving)
    assert finish_deployment(NAME, services=serving.services, now=NOW + 2) is None
    assert serving.answers.given == []


def lose_answers(serving: MemoryServing) -> None:
    """Forget the answers, as if Step Functions had never received them."""
    serving.answers.given.clear()
    serving.answers.gone.clear()


CHECK = check_job_name(NAME)
CHECKED = ServingState(is_ready=True, failure=None, seconds=30.0)


def test_the_job_over_the_samples_answers_the_task_and_settles_nothing() -> None:
    serving = with_row(Hosting.TRANSFORM)
    serving.endpoints.transforms[CHECK] = CHECKED
    assert finish_deployment(CHECK, services=serving.services, now=NOW) is DeploymentStatus.CREATING
    assert [kind for _, kind, _ in serving.answers.given] == ["success"]
    assert row_of(serving).status is DeploymentStatus.CREATING


def test_a_job_over_the_samples_that_fails_fails_the_deployment_with_its_own_log() -> None:
    serving = with_row(Hosting.TRANSFORM)
    serving.endpoints.transforms[CHECK] = ServingState(is_ready=False, failure="AlgorithmError", seconds=30.0)
    serving.logs.write(f"{CHECK}/i-1", LINES, 10, TRANSFORM_LOG_GROUP)
    serving.logs.write(f"{NAME}/i-1", ["of another job"], 0, TRANSFORM_LOG_GROUP)
    assert finish_deployment(CHECK, services=serving.services, now=NOW) is DeploymentStatus.FAILED
    assert row_of(serving).message == "AlgorithmError\nloading the model\nRuntimeError: no weights"
    assert row_of(serving).billed_seconds == 30.0


def test_a_transform_job_brings_its_billed_time_with_the_checks() -> None:
    serving = with_row(Hosting.TRANSFORM)
    serving.endpoints.transforms[CHECK] = CHECKED
    serving.deployments.record_check(NAME, now=NOW, checked_samples=2, latency=None)
    # The check's event comes again, and the transform job is not known yet.
    assert finish_deployment(CHECK, services=serving.services, now=NOW + 600) is None
    serving.endpoints.transforms[NAME] = ServingState(is_ready=True, failure=None, seconds=120.0)
    assert finish_deployment(NAME, services=serving.services, now=NOW + 600) is DeploymentStatus.READY
    # 2 instances × 120 s, and 30 s of the check's one
    assert row_of(serving).billed_seconds == 270.0
    lose_answers(serving)
    finish_deployment(NAME, services=serving.services, now=NOW + 601)
    assert [kind for _, kind, _ in serving.answers.given] == ["success"]


def test_a_transform_job_that_was_never_created_fails_a_while_after_its_check() -> None:
    serving = with_row(Hosting.TRANSFORM)
    serving.endpoints.transforms[CHECK] = CHECKED
    serving.deployments.record_check(NAME, now=NOW + 2000, checked_samples=2, latency=None)
    assert finish_deployment(NAME, services=serving.services, now=NOW + 2600) is None
    assert finish_deployment(NAME, services=serving.services, now=NOW + 3000) is DeploymentStatus.FAILED
    assert f"the transform {NAME} does not exist in SageMaker" in (row_of(serving).message or "")


def test_deployment_whose_endpoint_was_never_created_fails_after_a_while(serving: MemoryServing) -> None:
    assert finish_deployment(NAME, services=serving.services, now=NOW + 600) is None
    assert finish_deployment(NAME, services=serving.services, now=NOW + 1000) is DeploymentStatus.FAILED
    assert f"the endpoint {NAME} does not exist in SageMaker" in (row_of(serving).message or "")


def test_events_of_others_are_passed_over(serving: MemoryServing) -> None:
    assert finish_deployment("traindyno--somebody", services=serving.services, now=NOW) is None
