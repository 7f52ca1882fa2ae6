"""A task of Step Functions takes one answer. MiniStack takes another one until the task has read the first."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

Data = Mapping[str, Any]
Answer = Callable[[Data], Any]


class SingleAnswers:
    """``tasks``: waiting tasks by token; the ``event`` of each is set by its answer. ``refuse`` makes the error."""

    def __init__(self, tasks: Mapping[str, Mapping[str, Any]], refuse: Callable[[], Any]) -> None:
        self._tasks = tasks
        self._refuse = refuse
        self._lock = threading.Lock()

    def once(self, answer: Answer) -> Answer:
        """``answer``, or the error for a task that has its answer already."""

        def answer_once(data: Data) -> Any:
            with self._lock:
                task = self._tasks.get(str(data.get("taskToken")))
                return self._refuse() if task and task["event"].is_set() else answer(data)

        return answer_once
