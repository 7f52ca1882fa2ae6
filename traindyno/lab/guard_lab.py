"""Refuses to delete a lab that has suites or endpoints in flight, and to update it without a
setting that it has.

Expiring endpoints are deleted with the lab.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from traindyno.aws.deployment import is_rolled_back
from traindyno.aws.executions import Executions
from traindyno.core.costs.quantity_text import counted, joined
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.lab.end_endpoints import Serving, names_in_use
from traindyno.store.attempts import AttemptRows

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

MOST_NAMED = 5
# CloudFormation takes answers of 4,096 bytes.
MOST_CHARACTERS = 2_000


class GuardLabServices(Protocol):
    attempts: AttemptRows


def refusal_to_delete(
    *, lab: str, executions: Executions, services: GuardLabServices, serving: Serving, now: float
) -> str | None:
    """None for an idle lab.

    In flight: a running execution, a training job whose end is not recorded yet, an endpoint that
    is being created, or a kept one.
    """
    running = dict.fromkeys(executions.list_running())
    running |= dict.fromkeys(
        row.owner.execution_id for row in services.attempts.list_open() if row.end is None
    )
    endpoints = dict.fromkeys(names_in_use(serving, now=now))
    if not running and not endpoints:
        return None
    option = "" if lab == DEFAULT_LAB else f" --lab {lab}"
    commands = [f"traindyno stop {name}{option}" for name in running]
    commands += [f"traindyno undeploy {name}{option}" for name in endpoints]
    named = "; ".join(commands[:MOST_NAMED])
    more = (
        f"; and so on for {len(commands) - MOST_NAMED} more" if len(commands) > MOST_NAMED else ""
    )
    counts = joined(
        [
            counted(len(some), what)
            for some, what in ((running, "suite"), (endpoints, "endpoint"))
            if some
        ]
    )
    return (
        f"lab {lab} has {counts} in flight, and nothing was deleted. Stop with: {named}{more}. "
        "Then destroy it again: the lab works, but CloudFormation refuses to update its stack."
    )


def refusal_to_forget(
    event: Mapping[str, Any], *, lab: str, cloudformation: "CloudFormationClient"
) -> str | None:
    """None if the lab's file names each setting of the deployed lab whose value is not the default.

    A rollback after a failed deployment takes settings back, and must not fail.
    """
    deployed = event.get("OldResourceProperties", {}).get("Settings", {})
    named = event["ResourceProperties"].get("Settings", {})
    lost = [f"{name} = {value}" for name, value in deployed.items() if value and name not in named]
    if (
        event["RequestType"] != "Update"
        or not lost
        or is_rolled_back(cloudformation, event["StackId"])
    ):
        return None
    return (
        f"labs/{lab}.toml lacks settings of the deployed lab: "
        f"{'; '.join(lost)[:MOST_CHARACTERS]}. Add them, or name"
        ' each with its default, such as false, "" or [], to give it up. Then deploy again.'
    )
