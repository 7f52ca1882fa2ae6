"""Event: an execution was aborted, failed or timed out. Stop its training jobs, and keep no instances warm for it."""

import os
import time
from typing import Any, Protocol

from traindyno.lab.pace import Pace
from traindyno.lab.services import connect
from traindyno.lab.stop_runs import free_turns, stop_runs
from traindyno.lab.warm_pools import release_warm_pools

LAST_MILLISECONDS = 30_000


class Context(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


def handle(event: dict[str, Any], context: Context) -> None:
    execution_id = event["detail"]["name"]
    services = connect(table=os.environ["TABLE"], bucket=os.environ["BUCKET"])
    stop_runs(
        execution_id,
        services=services,
        pace=Pace(may_go_on=lambda: context.get_remaining_time_in_millis() > LAST_MILLISECONDS, sleep=time.sleep),
    )
    free_turns(execution_id, services=services, now=time.time())
    release_warm_pools(execution_id, lab=os.environ["LAB"], services=services, sleep=time.sleep)
