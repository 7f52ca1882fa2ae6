"""State transitions of an execution, its Distributed Maps' child executions included: what Step Functions bills."""

from collections import Counter
from typing import Any

ENTERED = "StateEntered"


def count_transitions(stepfunctions: Any, execution_arn: str) -> Counter[str]:
    """How often each state was entered, by name."""
    counts = _entered(stepfunctions, execution_arn)
    for page in stepfunctions.get_paginator("list_map_runs").paginate(executionArn=execution_arn):
        for map_run in page["mapRuns"]:
            counts += _of_children(stepfunctions, map_run["mapRunArn"])
    return counts


def _of_children(stepfunctions: Any, map_run_arn: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    for page in stepfunctions.get_paginator("list_executions").paginate(mapRunArn=map_run_arn):
        for child in page["executions"]:
            counts += _entered(stepfunctions, child["executionArn"])
    return counts


def _entered(stepfunctions: Any, execution_arn: str) -> Counter[str]:
    pages = stepfunctions.get_paginator("get_execution_history").paginate(executionArn=execution_arn)
    events = (event for page in pages for event in page["events"])
    return Counter(event["stateEnteredEventDetails"]["name"] for event in events if event["type"].endswith(ENTERED))
