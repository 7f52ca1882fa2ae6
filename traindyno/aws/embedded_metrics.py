"""Metrics as a log line that CloudWatch reads (embedded metric format), so that counting costs no
API call.
"""

import json
from collections.abc import Mapping

from traindyno.core.lab_names import METRIC_NAMESPACE


def metrics_line(counts: Mapping[str, int], *, lab: str, now: float) -> str:
    definition = {
        "Namespace": METRIC_NAMESPACE,
        "Dimensions": [["Lab"]],
        "Metrics": [{"Name": name, "Unit": "Count"} for name in counts],
    }
    return json.dumps(
        {
            "_aws": {"Timestamp": int(now * 1000), "CloudWatchMetrics": [definition]},
            "Lab": lab,
            **counts,
        }
    )
