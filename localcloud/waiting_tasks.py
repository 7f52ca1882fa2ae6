"""Corrections of MiniStack's tasks: a waiting task ends with its function's error, or at the limit from its input."""

import threading
from collections.abc import Mapping
from typing import Any

State = Mapping[str, Any]
LIMIT_PATH = "TimeoutSecondsPath"


class WaitingTasks:
    """MiniStack waits for the answer of a task whose function has failed, 27 hours long, and reads no time limit from
    the input. Its retries repeat the token, so a late answer to one attempt would end the next one.
    """

    def __init__(self, machines: Any) -> None:
        """``machines``: MiniStack's module for Step Functions."""
        self._machines = machines
        self._execute, self._wait, self._call = (
            machines._execute_task,
            machines._invoke_with_callback,
            machines._call_lambda,
        )
        self._here = threading.local()

    def install(self) -> None:
        self._machines._execute_task = self.execute
        self._machines._invoke_with_callback = self.wait
        self._machines._call_lambda = self.call

    def execute(self, state: State, data: Any, execution: Any, context: dict[str, Any]) -> Any:
        if LIMIT_PATH in state:
            state = {**state, "TimeoutSeconds": self._limit(state, data, context)}
        self._here.context = context
        return self._execute(state, data, execution, context)

    def wait(self, resource: str, payload: Any, token: str, state: State) -> Any:
        self._here.token = token
        try:
            return self._wait(resource, payload, token, state)
        finally:
            self._here.token = None
            self._here.context["Task"] = {"Token": self._machines.new_uuid()}

    def call(self, function: str, event: Any) -> Any:
        try:
            return self._call(function, event)
        except self._machines._ExecutionError as error:
            if token := getattr(self._here, "token", None):
                answer = {"taskToken": token, "error": error.error, "cause": error.cause}
                self._machines._send_task_failure(answer)  # an answer that the function gave before stays
            raise

    def _limit(self, state: State, data: Any, context: Mapping[str, Any]) -> int:
        """No Retry or Catch applies to this error, as on AWS."""
        path, machines = state[LIMIT_PATH], self._machines
        found = machines._resolve_path_or_ctx(path, machines._apply_input_path(state, data, context), context)
        if isinstance(found, bool) or not isinstance(found, int) or found < 1:
            cause = f"{LIMIT_PATH} {path}: expected a number of seconds, a positive integer; found {found!r}"
            raise machines._ExecutionError("States.Runtime", cause)
        return found
