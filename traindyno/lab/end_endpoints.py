"""A lab's endpoints with their records, and their ends: of one by its name, at a sweep, and with
the lab.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from traindyno.aws import clients
from traindyno.aws.client_errors import AwsError
from traindyno.aws.endpoints import EndpointBusy, Endpoints
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import LAB_TAG
from traindyno.core.s3_keys import MODELS_PREFIX, deployment_key, served_model_key
from traindyno.core.serving.deployment import (
    CREATED_WITHIN_SECONDS,
    NOTICE_SECONDS,
    ModelDeployment,
    parse_deployment,
)
from traindyno.lab.environment import BucketEnvironment
from traindyno.sagemaker.serving import ENDS_AT_TAG, EndpointState
from traindyno.store.results_bucket import ResultsBucket


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    lab: str
    bucket: ResultsBucket
    endpoints: Endpoints

    def find(self, name: str) -> ModelDeployment | None:
        return self.bucket.find_as(deployment_key(name), partial(parse_deployment, lab=self.lab))

    def names(self) -> list[str]:
        """Deployments that have a record or a copy of their model."""
        parts = ((key, key.split("/")[1]) for key in self.bucket.list_keys(MODELS_PREFIX))
        return sorted(
            {name for key, name in parts if key in (deployment_key(name), served_model_key(name))}
        )


def open_serving(environment: BucketEnvironment) -> Serving:
    return Serving(
        lab=environment.lab,
        bucket=ResultsBucket(clients.s3(), environment.bucket),
        endpoints=Endpoints(clients.sagemaker(), clients.sagemaker_runtime),
    )


class EndpointOverdue(TraindynoError):
    """An endpoint should have been ended before this sweep, and is still billed."""


def remove_endpoint(name: str, serving: Serving) -> bool:
    """Delete the endpoint with its configuration, model, copy and record.

    Safe to repeat. Raises EndpointBusy.

    False if an endpoint of this name lacks the lab's tag: then all stays. Billing ends first, the
    record last.
    """
    is_ours = serving.endpoints.delete(name, lab=serving.lab)
    if is_ours:
        serving.bucket.delete(served_model_key(name))
        serving.bucket.delete(deployment_key(name))
    return is_ours


def sweep_endpoints(serving: Serving, *, now: float) -> tuple[int, list[Exception]]:
    """End what is due: the number of what was ended, and the errors.

    An endpoint that can't be read or ended does not keep the others; endpoints that lack the lab's
    tag are left alone.
    """
    removed = 0
    errors = list[Exception]()
    try:
        # In this order: `deploy` writes the record before it creates the endpoint.
        states = {state.name: state for state in serving.endpoints.list_named(serving.lab)}
        names = sorted({*serving.names(), *states})
    except AwsError as error:
        return 0, [error]
    for name in names:
        try:
            state = states.get(name)
            tags = serving.endpoints.tags(state) if state else {}
            if state and tags.get(LAB_TAG) != serving.lab:
                continue
            due_at = _due_at(name, state, tags, serving, now)
            if due_at > now:
                continue
            if state and due_at <= now - NOTICE_SECONDS:
                errors.append(
                    EndpointOverdue(
                        f"{name} was due {now - due_at:.0f} s ago and is {state.status}"
                    )
                )
            remove_endpoint(name, serving)
            removed += 1
        except EndpointBusy:
            pass  # the next sweep tries it again; if that lasts, it is overdue
        except (*AwsError, TraindynoError, ValueError) as error:
            errors.append(error)
    return removed, errors


def _due_at(
    name: str, state: EndpointState | None, tags: Mapping[str, str], serving: Serving, now: float
) -> float:
    if state is None:  # a start that failed, or an end that was cut off
        record = serving.find(name)
        return now if record is None else record.created_at + CREATED_WITHIN_SECONDS
    if serving.bucket.find(deployment_key(name)) is None:
        return now  # created after it was removed, as its model was still being copied
    return datetime.fromisoformat(tags.get(ENDS_AT_TAG, "")).timestamp()


def names_in_use(serving: Serving, *, now: float) -> list[str]:
    """Deployments that keep the lab from being destroyed: endpoints that SageMaker creates or may
    create.
    """
    states = {state.name: state for state in serving.endpoints.list_named(serving.lab)}
    names = {
        state.name
        for state in states.values()
        if state.is_busy and serving.endpoints.tags(state).get(LAB_TAG) == serving.lab
    }
    for name in {*serving.names()} - states.keys():
        deployment = serving.find(name)
        if deployment is not None and now - deployment.created_at < CREATED_WITHIN_SECONDS:
            names.add(name)
    return sorted(names)


def remove_all(serving: Serving) -> int:
    """How many were deleted.

    Without the lab, no function would delete them, and their billing would continue.
    """
    states = serving.endpoints.list_named(serving.lab)
    return sum(
        remove_endpoint(name, serving)
        for name in sorted({*serving.names(), *(state.name for state in states)})
    )
