"""Two corrections of MiniStack's answers: the error type of a failed function, and one answer only for a task."""

import threading
from collections.abc import Callable, Mapping
from typing import Any

# MiniStack gives this error type for every exception of a handler.
ANY_EXCEPTION = "Runtime.HandlerError"
# How MiniStack begins to say that the worker process of a call ended, and Lambda's error type for it.
WORKER_ENDED = ("Worker process died", "Worker process exited immediately", "[Errno 32] Broken pipe")
EXIT_ERROR = "Runtime.ExitError"
Data = Mapping[str, Any]
Answer = Callable[[Data], Any]


def with_error_type(answer: dict[str, Any]) -> dict[str, Any]:
    """MiniStack's answer of a function, with the exception's class as its error type, as Lambda's Python runtime gives
    it, or Lambda's own if the function's process was killed: state machines retry and catch by this type.
    """
    body = answer.get("body")
    if not answer.get("error") or not isinstance(body, dict):
        return answer
    message, name = str(body.get("errorMessage", "")), body.get("errorType")
    if message.startswith(WORKER_ENDED):
        name = EXIT_ERROR
    elif name == ANY_EXCEPTION:
        name = _exception_name(str(answer.get("log", "")), message) or name
    return {**answer, "body": {**body, "errorType": name}} if name else answer


def _exception_name(log: str, message: str) -> str | None:
    """The exception's name in the traceback at the end of ``log``; None without a traceback."""
    head = log.rstrip().removesuffix(message.rstrip()).rstrip()
    last = head.rpartition("\n")[2].removesuffix(":")
    return last.rpartition(".")[2] if last.replace(".", "").isidentifier() else None


class SingleAnswers:
    """A task of Step Functions takes one answer. MiniStack takes another one until the task has read the first.

    ``tasks`` are the waiting tasks by token; an answer sets the ``event`` of its task. ``refuse`` makes the error.
    """

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
