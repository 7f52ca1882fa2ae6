"""Every few minutes: find what no event told of, and say how much of it there was."""

import os
import sys
import time
from typing import Any, Protocol

from traindyno.aws import clients
from traindyno.aws.embedded_metrics import metrics_line
from traindyno.aws.executions import Executions
from traindyno.core.lab_names import OPEN_RUNS_METRIC, OVERDUE_RUNS_METRIC
from traindyno.lab.pace import Pace
from traindyno.lab.reconcile_runs import sweep
from traindyno.lab.services import connect

LAST_MILLISECONDS = 60_000


class Context(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


def handle(_event: dict[str, Any], context: Context) -> None:
    lab = os.environ["LAB"]
    swept = sweep(
        lab=lab,
        services=connect(table=os.environ["TABLE"], bucket=os.environ["BUCKET"]),
        executions=Executions(clients.stepfunctions(), os.environ["STATE_MACHINE_ARN"]),
        now=time.time(),
        pace=Pace(may_go_on=lambda: context.get_remaining_time_in_millis() > LAST_MILLISECONDS, sleep=time.sleep),
    )
    counts = {OPEN_RUNS_METRIC: swept.open, OVERDUE_RUNS_METRIC: swept.overdue}
    sys.stdout.write(metrics_line(counts, lab=lab, now=time.time()) + "\n")
