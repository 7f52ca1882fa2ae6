from dataclasses import replace
from typing import Any

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, READY, MemoryServing
from traindyno.core.serving.deployment import Hosting
from traindyno.lab.serving.reconcile_endpoints import SweptEndpoints, sweep_endpoints
from traindyno.store.model_deployments import DeploymentRow, DeploymentStatus


def with_row(expires_at: float | None, **changes: Any) -> MemoryServing:
    serving = MemoryServing()
    row = DeploymentRow(
        deployment=replace(DEPLOYMENT, expires_at=expires_at),
        status=DeploymentStatus.READY,
        created_at=NOW,
        token="t",
        checked_samples=8,
    )
    serving.deployments.create(replace(row, **changes))
    serving.endpoints.hosted[NAME] = READY
    return serving


def test_an_endpoint_is_deleted_when_it_has_expired_and_not_before() -> None:
    serving = with_row(NOW + 100)
    assert sweep_endpoints(services=serving.services, now=NOW + 99) == SweptEndpoints(open=1, overdue=0, removed=0)
    assert serving.endpoints.deleted == []
    assert sweep_endpoints(services=serving.services, now=NOW + 100) == SweptEndpoints(open=0, overdue=0, removed=1)
    assert serving.endpoints.deleted == [f"endpoint {NAME}", f"model {NAME}"]
    assert sweep_endpoints(services=serving.services, now=NOW + 101) == SweptEndpoints(open=0, overdue=0, removed=0)


def test_an_endpoint_that_outlives_its_expiry_by_ten_minutes_is_overdue() -> None:
    assert sweep_endpoints(services=with_row(NOW).services, now=NOW + 700).overdue == 1


def test_a_kept_endpoint_stays() -> None:
    serving = with_row(None)
    assert sweep_endpoints(services=serving.services, now=NOW + 10**9) == SweptEndpoints(open=1, overdue=0, removed=0)


def test_a_lost_event_is_made_up_for() -> None:
    serving = with_row(None, status=DeploymentStatus.CREATING, checked_samples=None)
    sweep_endpoints(services=serving.services, now=NOW + 30)
    assert serving.answers.given == []
    sweep_endpoints(services=serving.services, now=NOW + 90)
    assert [kind for _, kind, _ in serving.answers.given] == ["success"]


def test_a_lost_event_of_a_transform_job_after_its_check_is_made_up_for() -> None:
    transform = replace(DEPLOYMENT, hosting=Hosting.TRANSFORM, expires_at=None)
    serving = with_row(None, deployment=transform, status=DeploymentStatus.CREATING, checked_at=NOW + 500)
    serving.endpoints.transforms[NAME] = serving.endpoints.hosted.pop(NAME)
    sweep_endpoints(services=serving.services, now=NOW + 530)
    assert serving.answers.given == []
    sweep_endpoints(services=serving.services, now=NOW + 600)
    assert [kind for _, kind, _ in serving.answers.given] == ["success"]


def test_an_endpoint_that_somebody_deleted_elsewhere_is_noted() -> None:
    serving = with_row(None)
    del serving.endpoints.hosted[NAME]
    assert sweep_endpoints(services=serving.services, now=NOW + 500).removed == 1
    row = serving.deployments.find(NAME)
    assert row is not None
    assert row.message == "deleted outside of Traindyno"
