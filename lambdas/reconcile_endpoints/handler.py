"""Every few minutes: delete expired endpoints, finish deployments without an event, and count the open ones."""

import sys
import time
from typing import Any

from traindyno.aws.embedded_metrics import metrics_line
from traindyno.core.lab_names import OPEN_ENDPOINTS_METRIC, OVERDUE_ENDPOINTS_METRIC
from traindyno.lab.environment import BucketEnvironment, read_environment
from traindyno.lab.services import connect
from traindyno.lab.serving.reconcile_endpoints import sweep_endpoints
from traindyno.lab.use_case import use_case


def handle(_event: dict[str, Any], _context: object) -> None:
    environment = read_environment(BucketEnvironment)
    with use_case("ReconcileEndpoints") as line:
        swept = sweep_endpoints(services=connect(environment), now=time.time())
        line.note(open=swept.open, overdue=swept.overdue, removed=swept.removed)
    counts = {OPEN_ENDPOINTS_METRIC: swept.open, OVERDUE_ENDPOINTS_METRIC: swept.overdue}
    sys.stdout.write(metrics_line(counts, lab=environment.lab, now=time.time()) + "\n")
