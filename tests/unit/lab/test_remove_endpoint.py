from dataclasses import replace

import pytest

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, NEW, READY, MemoryServing
from traindyno.core.s3_keys import check_requests_key, served_model_key
from traindyno.core.serving.deployment import Hosting, check_job_name
from traindyno.lab.serving.remove_endpoint import cancel_deployment, remove_endpoint
from traindyno.store.model_deployments import DeploymentRow, DeploymentStatus


def deployed(hosting: Hosting) -> MemoryServing:
    serving = MemoryServing()
    row = DeploymentRow(
        deployment=replace(DEPLOYMENT, hosting=hosting), status=DeploymentStatus.READY, created_at=NOW, token="t"
    )
    serving.deployments.create(row)
    if hosting is Hosting.ENDPOINT:
        serving.endpoints.hosted[NAME] = READY
    else:
        serving.endpoints.transforms |= {check_job_name(NAME): READY, NAME: NEW}
    serving.objects.contents |= {served_model_key(NAME): b"copy", check_requests_key(NAME): b"requests"}
    return serving


def test_an_endpoint_goes_with_its_model_and_its_copy_and_its_row_stays() -> None:
    serving = deployed(Hosting.ENDPOINT)
    assert remove_endpoint(NAME, services=serving.services, now=NOW + 60, message="expired")
    assert serving.endpoints.deleted == [f"endpoint {NAME}", f"model {NAME}"]
    assert serving.endpoints.find_endpoint(NAME) is None
    assert served_model_key(NAME) not in serving.objects.contents
    row = serving.deployments.find(NAME)
    assert row is not None
    assert (row.status, row.removed_at, row.message) == (DeploymentStatus.REMOVED, NOW + 60, "expired")
    assert not remove_endpoint(NAME, services=serving.services, now=NOW + 90)
    assert len(serving.endpoints.deleted) == 2


def test_a_transform_job_and_its_check_are_stopped_and_what_they_read_is_deleted() -> None:
    serving = deployed(Hosting.TRANSFORM)
    assert remove_endpoint(NAME, services=serving.services, now=NOW)
    assert serving.endpoints.deleted == [f"transform {NAME}-check", f"transform {NAME}", f"model {NAME}"]
    stopped = serving.endpoints.find_transform(NAME)
    assert stopped is not None
    assert stopped.is_settled
    assert serving.objects.contents.keys() & {served_model_key(NAME), check_requests_key(NAME)} == set()


@pytest.mark.parametrize(
    ("hosting", "checked_samples", "answers"),
    [
        (Hosting.ENDPOINT, None, ["DeploymentRemoved"]),
        (Hosting.ENDPOINT, 2, []),
        (Hosting.TRANSFORM, 2, ["DeploymentRemoved"]),
    ],
)
def test_the_task_of_a_deployment_that_is_cancelled_is_told(
    hosting: Hosting, checked_samples: int | None, answers: list[str]
) -> None:
    serving = deployed(hosting)
    if checked_samples is not None:
        serving.deployments.record_check(NAME, now=NOW, checked_samples=checked_samples, latency=None)
    assert cancel_deployment(NAME, services=serving.services, now=NOW, message="removed by traindyno undeploy")
    assert [kind for _, kind, _ in serving.answers.given] == answers
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.message == "removed by traindyno undeploy"
    assert not cancel_deployment(NAME, services=serving.services, now=NOW + 1, message="again")


def test_a_name_that_nobody_deployed_deletes_nothing() -> None:
    serving = MemoryServing()
    assert not remove_endpoint("traindyno--other", services=serving.services, now=NOW)
    assert serving.endpoints.deleted == []
