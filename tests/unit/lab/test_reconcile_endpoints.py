from dataclasses import replace
from decimal import ROUND_UP, Decimal
from random import Random
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.unit.lab_in_memory import NOW
from tests.unit.serving_in_memory import DEPLOYMENT, NAME, NEW, READY, SETTINGS, MemoryServing
from traindyno.core.costs.prices import cost_usd
from traindyno.core.serving.deployment import Hosting, ModelDeployment, check_job_name
from traindyno.core.serving.deployment_document import deployment_document, parse_deployment
from traindyno.core.serving.lifetime import END_SECONDS, LEAST_PAID_SECONDS, SWEEP_SECONDS
from traindyno.lab.serving.deploy_model import deploy_model
from traindyno.lab.serving.reconcile_endpoints import SweptEndpoints, sweep_endpoints
from traindyno.lab.serving.remove_endpoint import cancel_deployment
from traindyno.sagemaker.serving.serving_description import ServingState
from traindyno.store.items import RowUnreadable
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


TRANSFORM = replace(
    DEPLOYMENT, hosting=Hosting.TRANSFORM, expires_at=NOW + 3600, input_s3_uri="s3://results/data/x/", instance_count=2
)
STOPPED = ServingState(is_ready=False, failure="the transform job ended as Stopped", seconds=50.0)


def limited(random: Random) -> ModelDeployment:
    """A deployment with an expiry, an amount, or both, at any price."""
    price = Decimal(random.choice(["0.0001", "0.065", "0.204", "1.408", "37.688", "113.07"]))
    count = random.choice([1, 2, 3, 7, 100])
    least = cost_usd(LEAST_PAID_SECONDS, count, price) * Decimal(random.choice(["1", "1.001", "1.7", "333.3"]))
    has_expiry, has_amount = random.choice([(True, False), (False, True), (True, True)])
    return replace(
        DEPLOYMENT if random.random() < 0.5 else TRANSFORM,
        usd_per_hour=price,
        instance_count=count,
        expires_at=NOW + random.choice([36, 3600, 86_400]) if has_expiry else None,
        max_usd=least.quantize(Decimal("0.000001"), rounding=ROUND_UP) if has_amount else None,
    )


@pytest.mark.parametrize("late_seconds", [0, 1000])
def test_no_deployment_costs_more_than_its_amount_and_its_longest_life(late_seconds: int) -> None:
    """A sweep comes within 5 minutes of the one before, SageMaker needs up to 5 minutes more; it bills from the
    creation on. A sweep that comes later costs its delay.
    """
    random = Random(25)
    for _ in range(300):
        deployment = limited(random)
        parse_deployment(deployment_document(deployment), lab="traindyno")
        serving = started(deployment)
        row = serving.deployments.find(NAME)
        assert row is not None
        assert row.most_usd is not None
        assert row.ends_at is not None
        last = max(NOW, row.ends_at - random.uniform(0, SWEEP_SECONDS))
        while not removed_at(serving):
            swept_at = last + random.choice([1, SWEEP_SECONDS / 2, SWEEP_SECONDS])
            is_due = row.is_expired(last + SWEEP_SECONDS)
            swept_at += late_seconds if is_due else 0
            assert last < max(NOW, row.ends_at) + SWEEP_SECONDS, "it is not ended"
            sweep_endpoints(services=serving.services, now=swept_at)
            last = swept_at
        assert row.is_expired(last)
        billed_seconds = Decimal(str(last)) - Decimal(str(NOW)) + random.choice([0, END_SECONDS])
        billed = cost_usd(billed_seconds, deployment.instance_count, deployment.usd_per_hour or Decimal(0))
        delay = cost_usd(late_seconds, deployment.instance_count, deployment.usd_per_hour or Decimal(0))
        assert billed <= row.most_usd + delay
        if deployment.max_usd is not None:
            assert billed <= deployment.max_usd + delay


def started(deployment: ModelDeployment) -> MemoryServing:
    """In service, or in its transform job."""
    if deployment.is_endpoint:
        return with_row(deployment.expires_at, deployment=deployment)
    return with_job(deployment)


def with_job(deployment: ModelDeployment = TRANSFORM, **changes: Any) -> MemoryServing:
    serving = with_row(None, deployment=deployment, status=DeploymentStatus.CREATING, checked_at=NOW, **changes)
    serving.endpoints.transforms |= {
        check_job_name(NAME): ServingState(is_ready=True, failure=None, seconds=10.0),
        NAME: NEW,
    }
    return serving


def removed_at(serving: MemoryServing) -> float | None:
    return row_of(serving).removed_at


def row_of(serving: MemoryServing) -> DeploymentRow:
    row = serving.deployments.find(NAME)
    assert row is not None
    return row


def test_an_endpoint_that_would_cost_more_than_its_amount_is_ended_and_says_so() -> None:
    # $0.204 pays for an hour; ten minutes of it are kept until the end is noticed and has come
    serving = with_row(None, deployment=replace(DEPLOYMENT, expires_at=None, max_usd=Decimal("0.204")))
    assert sweep_endpoints(services=serving.services, now=NOW + 2999).removed == 0
    assert sweep_endpoints(services=serving.services, now=NOW + 3000).removed == 1
    assert row_of(serving).message == "the lab ended it before it could cost more than its max_usd of $0.204"


def test_a_transform_job_is_stopped_at_its_limit_and_its_task_is_told() -> None:
    serving = with_job()
    sweep_endpoints(services=serving.services, now=NOW + 3599)
    assert serving.endpoints.deleted == []
    sweep_endpoints(services=serving.services, now=NOW + 3600)
    row = row_of(serving)
    assert (row.status, row.removed_at) == (DeploymentStatus.REMOVED, NOW + 3600)
    reason = "the transform job ended as Stopped: the lab stopped it, because it had not ended within its time limit"
    assert [(kind, cause) for _, kind, cause in serving.answers.given] == [("DeploymentFailed", reason)]
    assert row.message == reason


def test_a_transform_job_that_stops_slowly_is_removed_with_its_billed_time() -> None:
    serving = with_job()
    serving.endpoints.stop_transform = serving.endpoints.deleted.append  # type: ignore[method-assign,assignment]
    assert sweep_endpoints(services=serving.services, now=NOW + 3700) == SweptEndpoints(open=1, overdue=0, removed=0)
    assert serving.endpoints.deleted == [check_job_name(NAME), NAME]
    # ten minutes after its limit it counts as overdue
    assert sweep_endpoints(services=serving.services, now=NOW + 4300) == SweptEndpoints(open=1, overdue=1, removed=0)
    serving.endpoints.transforms[NAME] = STOPPED
    assert sweep_endpoints(services=serving.services, now=NOW + 4400).removed == 1
    # 2 instances × 50 s, and the 10 s of the check
    assert row_of(serving).billed_seconds == 110.0


def test_a_transform_job_of_an_earlier_version_has_the_longest_limit() -> None:
    serving = with_job(replace(TRANSFORM, expires_at=None))
    sweep_endpoints(services=serving.services, now=NOW + 120 * 3600 - 1)
    assert removed_at(serving) is None
    sweep_endpoints(services=serving.services, now=NOW + 120 * 3600)
    assert removed_at(serving) is not None


def test_a_transform_whose_state_machine_was_aborted_after_its_check_is_removed() -> None:
    serving = with_job(checked_samples=None)
    del serving.endpoints.transforms[NAME]
    sweep_endpoints(services=serving.services, now=NOW + 3599)
    assert removed_at(serving) is None
    assert sweep_endpoints(services=serving.services, now=NOW + 3600).removed == 1


def test_an_endpoint_that_is_created_after_its_removal_is_deleted() -> None:
    """DeployModel copies a large model while `traindyno undeploy` removes the deployment."""
    serving = with_row(None, status=DeploymentStatus.CREATING, checked_samples=None)
    cancel_deployment(NAME, services=serving.services, now=NOW + 10, message="removed by traindyno undeploy")
    serving.endpoints.hosted[NAME] = NEW
    sweep_endpoints(services=serving.services, now=NOW + 300)
    assert serving.endpoints.hosted == {}
    assert row_of(serving).removed_at == NOW + 10
    serving.endpoints.deleted.clear()
    sweep_endpoints(services=serving.services, now=NOW + 10 + 7200)
    assert serving.endpoints.deleted == []


@pytest.mark.parametrize("hosting", [Hosting.ENDPOINT, Hosting.TRANSFORM])
def test_nothing_is_created_for_a_deployment_that_has_been_ended(hosting: Hosting) -> None:
    deployment = replace(TRANSFORM, hosting=hosting, expires_at=NOW + 100)
    document = deployment_document(deployment)
    for change in ("expired", "removed"):
        serving = with_row(None, deployment=deployment, status=DeploymentStatus.CREATING)
        serving.endpoints.models.add(NAME)
        if change == "removed":
            serving.deployments.remove(NAME, now=NOW + 50, message="removed by traindyno undeploy")
        now = NOW + 60 if change == "removed" else NOW + 100
        answered = deploy_model(document, "u", services=serving.services, settings=SETTINGS, now=now)
        assert answered == "DeploymentRefused"
        assert serving.endpoints.requests == []


def test_a_deployment_that_can_not_be_ended_does_not_keep_the_others() -> None:
    serving = with_row(NOW + 100)
    second = replace(DEPLOYMENT, name="traindyno--z", expires_at=NOW + 100)
    row = DeploymentRow(deployment=second, status=DeploymentStatus.READY, created_at=NOW, token="t", checked_samples=8)
    serving.deployments.create(row)
    serving.endpoints.hosted[second.name] = READY
    delete = serving.endpoints.delete_endpoint

    def refuse_first(name: str) -> None:
        if name == NAME:
            raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "DeleteEndpoint")
        delete(name)

    serving.endpoints.delete_endpoint = refuse_first  # type: ignore[method-assign]
    with pytest.raises(ClientError, match="AccessDenied"):
        sweep_endpoints(services=serving.services, now=NOW + 200)
    assert sorted(serving.endpoints.hosted) == [NAME]


def test_a_damaged_row_does_not_keep_the_other_deployments() -> None:
    serving = with_row(NOW + 100)
    item = dict(next(iter(serving.table.items.values())))
    serving.table.put({**item, "sk": "deployment#traindyno--a", "status": "melted"})
    with pytest.raises(RowUnreadable, match="deployment#traindyno--a"):
        sweep_endpoints(services=serving.services, now=NOW + 200)
    assert serving.endpoints.hosted == {}
