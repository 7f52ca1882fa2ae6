"""Refuses to delete a lab that has suites or endpoints in flight; expiring endpoints are deleted with it."""

from collections.abc import Iterator
from typing import Protocol

from traindyno.aws.executions import Executions
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.lab.serving.remove_endpoint import RemoveEndpointServices, remove_endpoint
from traindyno.store.attempts import AttemptRows
from traindyno.store.model_deployments import DeploymentRows

MOST_NAMED = 5
REMOVED = "the lab was destroyed"


class GuardLabServices(RemoveEndpointServices, Protocol):
    attempts: AttemptRows
    deployments: DeploymentRows


def refusal_to_delete(
    *, lab: str, executions: Executions, deploying: Executions, services: GuardLabServices
) -> str | None:
    """None for an idle lab. In flight: a running execution, a training job whose end is not recorded yet, a model that
    is being deployed, or a kept endpoint.
    """
    found = dict.fromkeys(executions.list_running())
    found |= dict.fromkeys(row.owner.execution_id for row in services.attempts.list_open() if row.end is None)
    endpoints = dict.fromkeys(deploying.list_running())
    endpoints |= dict.fromkeys(_kept(services))
    if not found and not endpoints:
        return None
    option = "" if lab == DEFAULT_LAB else f" --lab {lab}"
    commands = [f"traindyno stop {name}{option}" for name in found]
    commands += [f"traindyno undeploy {name}{option}" for name in endpoints]
    named = "; ".join(commands[:MOST_NAMED])
    more = f"; and so on for {len(commands) - MOST_NAMED} more" if len(commands) > MOST_NAMED else ""
    counts = " and ".join(_counted(found, "suite") + _counted(endpoints, "endpoint"))
    return (
        f"lab {lab} has {counts} in flight, and nothing was deleted. Stop with: {named}{more}. Then destroy it again."
    )


def remove_expiring_endpoints(*, services: GuardLabServices, now: float) -> int:
    """How many were deleted. Without the lab, no function would delete them, and their billing would continue."""
    names = [row.deployment.name for row in services.deployments.list_all() if row.is_open]
    return sum(remove_endpoint(name, services=services, now=now, message=REMOVED) for name in names)


def _kept(services: GuardLabServices) -> Iterator[str]:
    for row in services.deployments.list_all():
        if row.is_open and row.deployment.is_endpoint and row.deployment.expires_at is None:
            yield row.deployment.name


def _counted(names: dict[str, None], what: str) -> list[str]:
    return [f"{len(names)} {what}{'s' if len(names) > 1 else ''}"] if names else []
