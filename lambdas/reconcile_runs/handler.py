"""Every few minutes: finish or stop the jobs whose events were lost, end endpoints that are due,
and log their numbers.

A call by hand may give ``quiet_seconds``: attempts that
were submitted later than that are left to their events.
"""

import time
from typing import Any

from traindyno.aws import clients
from traindyno.aws.executions import Executions
from traindyno.lab.end_endpoints import open_serving, sweep_endpoints
from traindyno.lab.environment import GuardEnvironment, read_environment
from traindyno.lab.reconcile_runs import QUIET_SECONDS, sweep
from traindyno.lab.services import connect
from traindyno.lab.stop_runs import FunctionContext, RequestPace
from traindyno.lab.use_case import use_case

LAST_MILLISECONDS = 60_000


def handle(event: dict[str, Any], context: FunctionContext) -> None:
    environment = read_environment(GuardEnvironment)
    services = connect(environment)
    pace = RequestPace.of(context, last_milliseconds=LAST_MILLISECONDS)
    with use_case("ReconcileRuns") as line:
        removed, errors = sweep_endpoints(open_serving(environment), now=time.time())
        line.update(endpoints_removed=removed)
        swept = sweep(
            lab=environment.lab,
            services=services,
            executions=Executions(clients.stepfunctions(), environment.state_machine_arn),
            now=time.time(),
            pace=pace,
            quiet_seconds=float(event.get("quiet_seconds", QUIET_SECONDS)),
        )
        failures = [*errors, *swept.failures]
        line.update(
            open=swept.open,
            overdue=swept.overdue,
            left=swept.left,
            stopped=swept.stopped,
            failed=len(failures),
        )
        if failures:
            raise failures[0]  # so that the alarm for failed functions is on
