"""End endpoints: one by its name, those that are due at a sweep, and all when the lab is destroyed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from traindyno.aws.client_errors import AwsError
from traindyno.aws.endpoints import EndpointBusy
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import LAB_TAG
from traindyno.core.s3_keys import served_model_key
from traindyno.core.serving.deployment import NOTICE_SECONDS
from traindyno.lab.serving.services import Serving
from traindyno.sagemaker.serving import ENDS_AT_TAG, KEPT, EndpointState
from traindyno.store.deployments import MESSAGE_LENGTH, DeploymentRow

# DeployModel's longest time: afterwards, an endpoint that SageMaker does not have will not come any more.
CREATED_WITHIN_SECONDS = 900
GONE = "SageMaker has no such endpoint: it was deleted outside of Traindyno, or never created"
LATE = "created after it was removed"
NOT_OURS = "an endpoint of this name lacks the lab's tag; it stays as it is"


@dataclass(slots=True, kw_only=True)
class SweptEndpoints:
    """``open`` endpoints are billed; ``overdue`` ones should have been ended before this sweep."""

    open: int = 0
    overdue: int = 0
    removed: int = 0
    errors: list[Exception] = field(default_factory=list)


def remove_endpoint(name: str, serving: Serving, *, now: float, message: str) -> bool:
    """Delete the endpoint with its configuration, model and copy; its row keeps the cost. Safe to repeat.

    False if it was removed before. Raises EndpointBusy. Billing ends first.
    """
    if serving.endpoints.delete(name, lab=serving.lab):
        serving.bucket.delete(served_model_key(name))
    else:
        message = f"{message}; {NOT_OURS}"
    return serving.deployments.change(name, removed_at=now, message=message[:MESSAGE_LENGTH])


def sweep_endpoints(serving: Serving, *, now: float) -> SweptEndpoints:
    """End what is due. An endpoint that can't be read or ended does not keep the others; endpoints that lack the lab's
    tag are left alone.
    """
    swept = SweptEndpoints()
    rows: dict[str, DeploymentRow] = {}
    states: dict[str, EndpointState] | None = None
    try:
        rows = {row.deployment.name: row for row in serving.deployments.list_all(unreadable=swept.errors)}
        states = {state.name: state for state in serving.endpoints.list_named(serving.lab)}
    except AwsError as error:
        swept.errors.append(error)
    for name in sorted({*rows, *(states or {})}):
        try:
            _sweep(name, row=rows.get(name), states=states, serving=serving, swept=swept, now=now)
        except EndpointBusy:
            pass  # the next sweep tries it again; if that lasts, it is overdue
        except (*AwsError, TraindynoError) as error:
            swept.errors.append(error)
    return swept


def _sweep(
    name: str,
    *,
    row: DeploymentRow | None,
    states: Mapping[str, EndpointState] | None,
    serving: Serving,
    swept: SweptEndpoints,
    now: float,
) -> None:
    state = states.get(name) if states else None
    tags = serving.endpoints.tags(state) if state else {}
    if state and tags.get(LAB_TAG) != serving.lab:
        return
    is_known_gone = states is not None and state is None
    ends = [end for end in _ends(row, state, tags, is_known_gone, now) if end[0] <= now]
    swept.open += state is not None
    if not ends:
        return
    due_at, reason = min(at for at, _ in ends), ends[0][1]
    swept.overdue += state is not None and due_at <= now - NOTICE_SECONDS
    remove_endpoint(name, serving, now=now, message=reason)
    swept.removed += 1
    swept.open -= state is not None


def _ends(
    row: DeploymentRow | None, state: EndpointState | None, tags: Mapping[str, str], is_known_gone: bool, now: float
) -> Iterator[tuple[float, str]]:
    """Each instant from which on it is due, and why."""
    if row is not None and row.is_open:
        if row.ends_at is not None:
            yield row.ends_at, row.deployment.end_reason(row.created_at)
        if is_known_gone:
            yield row.created_at + CREATED_WITHIN_SECONDS, GONE
    if row is not None and row.removed_at is not None:
        # DeployModel may also make a copy and a model after the removal, and end before it makes their endpoint.
        is_recent = row.checked_samples is None and now - row.removed_at < 2 * CREATED_WITHIN_SECONDS
        if (state is not None and not state.is_leaving) or (is_known_gone and is_recent):
            yield row.removed_at, LATE
    if state is not None and not state.is_leaving and tags.get(ENDS_AT_TAG, "")[:1].isdigit():
        yield datetime.fromisoformat(tags[ENDS_AT_TAG]).timestamp(), "expired"


def names_in_use(serving: Serving, *, now: float) -> list[str]:
    """Deployments with which the lab can't be destroyed: kept ones, and those that SageMaker creates or may create."""
    states = {state.name: state for state in serving.endpoints.list_named(serving.lab)}
    rows = [row for row in serving.deployments.list_all() if row.is_open]
    found = [
        row.deployment.name
        for row in rows
        if row.ends_at is None or (row.deployment.name not in states and now - row.created_at < CREATED_WITHIN_SECONDS)
    ]
    for state in states.values():
        tags = serving.endpoints.tags(state)
        if tags.get(LAB_TAG) == serving.lab and (state.is_busy or tags.get(ENDS_AT_TAG) == KEPT):
            found.append(state.name)
    return sorted({*found})


def remove_all(serving: Serving, *, now: float, message: str) -> int:
    """How many were deleted. Without the lab, no function would delete them, and their billing would continue."""
    names = {row.deployment.name for row in serving.deployments.list_all() if row.is_open}
    for state in serving.endpoints.list_named(serving.lab):
        if serving.endpoints.tags(state).get(LAB_TAG) == serving.lab:
            names.add(state.name)
    for name in sorted(names):
        remove_endpoint(name, serving, now=now, message=message)
    return len(names)
