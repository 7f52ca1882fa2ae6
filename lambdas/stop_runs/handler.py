"""Event: an execution was aborted, failed or timed out. Stops its training jobs."""

import sys
import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.embedded_metrics import metrics_line
from traindyno.aws.executions import Executions
from traindyno.core.lab_names import FAILED_SUITES_METRIC
from traindyno.lab.environment import GuardEnvironment, read_environment
from traindyno.lab.services import connect
from traindyno.lab.stop_runs import (
    FunctionContext,
    RequestPace,
    free_start_slots,
    stop_runs,
    was_refused,
)
from traindyno.lab.use_case import use_case

LAST_MILLISECONDS = 30_000
FAILED = ("FAILED", "TIMED_OUT")


def handle(event: dict[str, Any], context: FunctionContext) -> None:
    execution_id = event["detail"]["name"]
    status = event["detail"].get("status")
    environment = read_environment(GuardEnvironment)
    pace = RequestPace.of(context, last_milliseconds=LAST_MILLISECONDS)
    with use_case("StopRuns", execution=execution_id, status=status) as line:
        if was_refused(
            execution_id, Executions(clients.stepfunctions(), environment.state_machine_arn)
        ):
            line.update(refused="yes")
            return
        if status in FAILED:
            sys.stdout.write(
                metrics_line({FAILED_SUITES_METRIC: 1}, lab=environment.lab, now=time.time()) + "\n"
            )
        services = connect(environment)
        line.update(stopped=stop_runs(execution_id, services=services, pace=pace))
        free_start_slots(execution_id, services=services, now=time.time())
