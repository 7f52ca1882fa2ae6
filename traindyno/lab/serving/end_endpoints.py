"""End endpoints: one by its name, those that are due at a sweep, and all when the lab is destroyed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from traindyno.aws.client_errors import AwsError
from traindyno.aws.endpoints import EndpointBusy
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import LAB_TAG
from traindyno.core.s3_keys import deployment_key, served_model_key
from traindyno.core.serving.deployment import NOTICE_SECONDS
from traindyno.lab.serving.services import Serving
from traindyno.sagemaker.serving import ENDS_AT_TAG, KEPT, EndpointState

# DeployModel's longest time: afterwards, an endpoint that SageMaker does not have will not come any more.
CREATED_WITHIN_SECONDS = 900


@dataclass(slots=True, kw_only=True)
class SweptEndpoints:
    """``open`` endpoints are billed; ``overdue`` ones should have been ended before this sweep."""

    open: int = 0
    overdue: int = 0
    removed: int = 0
    errors: list[Exception] = field(default_factory=list)


def remove_endpoint(name: str, serving: Serving) -> bool:
    """Delete the endpoint with its configuration, model, copy and record. Safe to repeat. Raises EndpointBusy.

    False if an endpoint of this name lacks the lab's tag: then all stays. Billing ends first, the record last.
    """
    is_ours = serving.endpoints.delete(name, lab=serving.lab)
    if is_ours:
        serving.bucket.delete(served_model_key(name))
        serving.bucket.delete(deployment_key(name))
    return is_ours


def sweep_endpoints(serving: Serving, *, now: float) -> SweptEndpoints:
    """End what is due. An endpoint that can't be read or ended does not keep the others; endpoints that lack the lab's
    tag are left alone.
    """
    swept = SweptEndpoints()
    try:
        # In this order: DeployModel writes the record before it creates the endpoint.
        states = {state.name: state for state in serving.endpoints.list_named(serving.lab)}
        deployed = {*serving.names()}
    except AwsError as error:
        swept.errors.append(error)
        return swept
    for name in sorted({*deployed, *states}):
        try:
            state = states.get(name)
            tags = serving.endpoints.tags(state) if state else {}
            if state and tags.get(LAB_TAG) != serving.lab:
                continue
            swept.open += state is not None
            due_at = _due_at(name, state, tags, serving, now)
            if due_at is None or due_at > now:
                continue
            swept.overdue += state is not None and due_at <= now - NOTICE_SECONDS
            remove_endpoint(name, serving)
            swept.removed += 1
            swept.open -= state is not None
        except EndpointBusy:
            pass  # the next sweep tries it again; if that lasts, it is overdue
        except (*AwsError, TraindynoError, ValueError) as error:
            swept.errors.append(error)
    return swept


def _due_at(
    name: str, state: EndpointState | None, tags: Mapping[str, str], serving: Serving, now: float
) -> float | None:
    if state is None:  # a start that failed, or an end that was cut off
        record = serving.find(name)
        return now if record is None else record.created_at + CREATED_WITHIN_SECONDS
    if serving.bucket.find(deployment_key(name)) is None:
        return now  # created after it was removed, as its model was still being copied
    ends_at = tags.get(ENDS_AT_TAG, KEPT)
    return None if ends_at == KEPT else datetime.fromisoformat(ends_at).timestamp()


def names_in_use(serving: Serving, *, now: float) -> list[str]:
    """Deployments with which the lab can't be destroyed: kept ones, and those that SageMaker creates or may create."""
    states = {state.name: state for state in serving.endpoints.list_named(serving.lab)}
    found = set()
    for name in serving.names():
        deployment = None if name in states else serving.find(name)
        if deployment is not None and now - deployment.created_at < CREATED_WITHIN_SECONDS:
            found.add(name)
    for state in states.values():
        tags = serving.endpoints.tags(state)
        if tags.get(LAB_TAG) == serving.lab and (state.is_busy or tags.get(ENDS_AT_TAG) == KEPT):
            found.add(state.name)
    return sorted(found)


def remove_all(serving: Serving) -> int:
    """How many were deleted. Without the lab, no function would delete them, and their billing would continue."""
    states = serving.endpoints.list_named(serving.lab)
    return sum(remove_endpoint(name, serving) for name in sorted({*serving.names(), *(each.name for each in states)}))
