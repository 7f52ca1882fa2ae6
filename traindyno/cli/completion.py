"""What a shell completes: names of the lab that the options before them choose; without such
options, of the local cloud's while it runs.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

import typer
from botocore.exceptions import BotoCoreError, ClientError

from traindyno.api.lab_target import Lab, LabTarget
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import DEFAULT_LAB

COMPLETED_EXECUTIONS = 200
Names = Callable[[LabTarget], Iterable[str]]
Complete = Callable[[typer.Context], list[str]]


def execution_names(target: LabTarget) -> Iterable[str]:
    latest = target.executions.list_latest(COMPLETED_EXECUTIONS)
    return (execution.execution_id for execution in latest)


def completed_by(names: Names) -> Complete:
    """Completes by the ``names`` in the lab; by none where it can't be read."""

    def complete(context: typer.Context) -> list[str]:
        given = context.params
        place: dict[str, Any] = {name: given.get(name) for name in ("region", "profile")}
        place["name"] = given.get("lab") or DEFAULT_LAB
        local = {"local": True}
        for choice in [local] if given.get("local") else [{**place, **local}, place]:
            refused = suppress(TraindynoError, BotoCoreError, ClientError)
            with refused, Lab(**choice).opened() as target:
                return list(names(target))
        return []

    return complete


complete_execution = completed_by(execution_names)
