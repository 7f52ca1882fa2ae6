"""Event: an execution was aborted, failed or timed out. Stops its training jobs and releases its warm instances."""

import os
import sys
import time
from typing import Any, Protocol

from traindyno.aws import clients
from traindyno.aws.embedded_metrics import metrics_line
from traindyno.aws.executions import Executions
from traindyno.core.lab_names import FAILED_SUITES_METRIC
from traindyno.lab.pace import Pace
from traindyno.lab.services import connect
from traindyno.lab.stop_runs import free_turns, stop_runs, was_refused
from traindyno.lab.warm_pools import release_warm_pools

LAST_MILLISECONDS = 30_000
FAILED = ("FAILED", "TIMED_OUT")


class Context(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


def handle(event: dict[str, Any], context: Context) -> None:
    execution_id, status = event["detail"]["name"], event["detail"].get("status")
    if was_refused(execution_id, Executions(clients.stepfunctions(), os.environ["STATE_MACHINE_ARN"])):
        return
    if status in FAILED:
        sys.stdout.write(metrics_line({FAILED_SUITES_METRIC: 1}, lab=os.environ["LAB"], now=time.time()) + "\n")
    services = connect(table=os.environ["TABLE"], bucket=os.environ["BUCKET"])
    stop_runs(
        execution_id,
        services=services,
        pace=Pace(may_go_on=lambda: context.get_remaining_time_in_millis() > LAST_MILLISECONDS, sleep=time.sleep),
    )
    free_turns(execution_id, services=services, now=time.time())
    release_warm_pools(execution_id, lab=os.environ["LAB"], services=services, sleep=time.sleep)
