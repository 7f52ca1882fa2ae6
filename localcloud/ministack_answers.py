"""Corrections of MiniStack's answers, where AWS answers otherwise.

MiniStack is also made to refuse strangers, and requests that AWS would throttle.
"""

import json
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from xml.sax.saxutils import escape

from localcloud.gate import ERROR

# MiniStack gives this error type for every exception of a handler.
ANY_EXCEPTION = "Runtime.HandlerError"
# How MiniStack begins to say that the worker process of a call ended, and Lambda's error type for
# it.
WORKER_ENDED = (
    "Worker process died",
    "Worker process exited immediately",
    "[Errno 32] Broken pipe",
)
EXIT_ERROR = "Runtime.ExitError"
Data = Mapping[str, Any]
Answer = Callable[[Data], Any]
State = Mapping[str, Any]
LIMIT_PATH = "TimeoutSecondsPath"
LAMBDA_PATH = "/2015-03-31/"
# The code and the status of an error in each protocol
Codes = Mapping[str, tuple[str, int]]
THROTTLED: Codes = {
    "json": ("ThrottlingException", 400),
    "lambda": ("TooManyRequestsException", 429),
    "query": ("Throttling", 400),
    "s3": ("SlowDown", 503),
}
DENIED: Codes = {
    "json": (ERROR, 403),
    "lambda": (ERROR, 403),
    "query": ("AccessDenied", 403),
    "s3": ("AccessDenied", 403),
}


def with_error_type(answer: dict[str, Any]) -> dict[str, Any]:
    """MiniStack's answer of a function, with the exception's class as its error type, as Lambda's
    Python runtime gives it, or Lambda's own if the function's process was killed: state machines
    retry and catch by this type.
    """
    body = answer.get("body")
    if not answer.get("error") or not isinstance(body, dict):
        return answer
    message = str(body.get("errorMessage", ""))
    name = body.get("errorType")
    if message.startswith(WORKER_ENDED):
        name = EXIT_ERROR
    elif (
        name == ANY_EXCEPTION
    ):  # the exception's name is in the traceback at the end of the log, if there is one
        head = str(answer.get("log", "")).rstrip().removesuffix(message.rstrip()).rstrip()
        last = head.rpartition("\n")[2].removesuffix(":")
        name = last.rpartition(".")[2] if last.replace(".", "").isidentifier() else name
    return {**answer, "body": {**body, "errorType": name}} if name else answer


class WaitingTasks:
    """MiniStack waits for the answer of a task whose function has failed, 27 hours long, and reads
    no time limit from the input. Its retries repeat the token, so a late answer to one attempt
    would end the next one. It also takes another answer until the task has read the first.
    """

    def __init__(self, machines: Any) -> None:
        """Keeps the functions of ``machines``, MiniStack's module for Step Functions."""
        self._machines = machines
        self._execute = machines._execute_task
        self._wait = machines._invoke_with_callback
        self._call = machines._call_lambda
        self._here = threading.local()
        self._answering = threading.Lock()

    def install(self) -> None:
        machines = self._machines
        machines._execute_task = self.execute
        machines._invoke_with_callback = self.wait
        machines._call_lambda = self.call
        machines._send_task_success = self.once(machines._send_task_success)
        machines._send_task_failure = self.once(machines._send_task_failure)

    def once(self, answer: Answer) -> Answer:
        """Wraps ``answer`` so that a task that has its answer already gets AWS's error."""

        def answer_once(data: Data) -> Any:
            with self._answering:
                task = self._machines._task_tokens.get(str(data.get("taskToken")))
                if task and task["event"].is_set():
                    said = "the task has its answer already"
                    return self._machines.error_response_json("TaskDoesNotExist", said, 400)
                return answer(data)

        return answer_once

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
            token = getattr(self._here, "token", None)
            if token:
                answer = {"taskToken": token, "error": error.error, "cause": error.cause}
                self._machines._send_task_failure(
                    answer
                )  # an answer that the function gave before stays
            raise

    def _limit(self, state: State, data: Any, context: Mapping[str, Any]) -> int:
        """No Retry or Catch applies to this error, as on AWS."""
        path = state[LIMIT_PATH]
        machines = self._machines
        seconds = machines._resolve_path_or_ctx(
            path, machines._apply_input_path(state, data, context), context
        )
        if isinstance(seconds, bool) or not isinstance(seconds, int) or seconds < 1:
            cause = (
                f"{LIMIT_PATH} {path}: expected a number of seconds, a positive integer; found "
                f"{seconds!r}"
            )
            raise machines._ExecutionError("States.Runtime", cause)
        return seconds


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]
    body: bytes


class Throttle:
    """Refuses a fraction of the requests; the seed decides which."""

    def __init__(self) -> None:
        self._fraction = 0.0
        self._dice = random.Random()

    def put_in_force(self, fraction: float, seed: int) -> None:
        self._fraction = fraction
        self._dice.seed(seed)

    def refuse(self, path: str, headers: Mapping[str, str]) -> HttpAnswer | None:
        is_refused = self._dice.random() < self._fraction
        return (
            error_answer(path, headers, THROTTLED, "Rate exceeded: reduce your request rate")
            if is_refused
            else None
        )


def error_answer(path: str, headers: Mapping[str, str], codes: Codes, message: str) -> HttpAnswer:
    """AWS's answer, in the protocol of the service that is asked."""
    if "x-amz-target" in headers or path.startswith((LAMBDA_PATH, "/_")):
        code, status = codes["json" if "x-amz-target" in headers else "lambda"]
        body = json.dumps({"__type": code, "message": message}).encode()
        return HttpAnswer(
            status, {"content-type": "application/x-amz-json-1.1", "x-amzn-errortype": code}, body
        )
    is_query = headers.get("content-type", "").startswith("application/x-www-form-urlencoded")
    code, status = codes["query" if is_query else "s3"]
    error = f"<Code>{code}</Code><Message>{escape(message)}</Message>"
    if is_query:
        xml = (
            f"<ErrorResponse><Error><Type>Sender</Type>{error}</Error>"
            "<RequestId>refused</RequestId></ErrorResponse>"
        )
        return HttpAnswer(status, {"content-type": "text/xml"}, xml.encode())
    return HttpAnswer(
        status, {"content-type": "application/xml"}, f"<Error>{error}</Error>".encode()
    )
