"""State transitions of an execution, its Distributed Maps' child executions included: what Step
Functions bills.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

ENTERED = "StateEntered"
ATTEMPTED = ("TaskScheduled", "LambdaFunctionScheduled")


def count_transitions(stepfunctions: Any, execution_arn: str) -> Counter[str]:
    """Counts transitions by kind of state, of the execution itself and of its lanes and runs.

    A state that starts a Distributed Map inside a Map is no event of MiniStack's histories: it is
    one per map run.
    """
    counts = Counter(transitions(_events(stepfunctions, execution_arn)))
    for page in stepfunctions.get_paginator("list_map_runs").paginate(executionArn=execution_arn):
        for map_run in page["mapRuns"]:
            counts["distributed map"] += 1
            for child in _children(stepfunctions, map_run["mapRunArn"]):
                counts += Counter(
                    f"{kind} of a run" for kind in transitions(_events(stepfunctions, child))
                )
    return counts


def transitions(events: Iterable[Mapping[str, Any]]) -> list[str]:
    """The kind of each state entered, such as ``Choice``; of tasks every attempt, as a retry is a
    transition too.
    """
    kinds = []
    for event in events:
        kind = event["type"].removesuffix(ENTERED)
        if event["type"] in ATTEMPTED:
            kinds.append("Task")
        elif event["type"].endswith(ENTERED) and kind != "Task":
            kinds.append(kind)
    return kinds


def _events(stepfunctions: Any, execution_arn: str) -> Iterable[Mapping[str, Any]]:
    pages = stepfunctions.get_paginator("get_execution_history").paginate(
        executionArn=execution_arn, includeExecutionData=False
    )
    return (event for page in pages for event in page["events"])


def _children(stepfunctions: Any, map_run_arn: str) -> list[str]:
    pages = stepfunctions.get_paginator("list_executions").paginate(mapRunArn=map_run_arn)
    return [child["executionArn"] for page in pages for child in page["executions"]]
