"""The error type of a failed function, which MiniStack leaves out: state machines retry and catch by it."""

from typing import Any

# The error type that MiniStack gives for every exception of a handler.
ANY_EXCEPTION = "Runtime.HandlerError"


def with_error_type(answer: dict[str, Any]) -> dict[str, Any]:
    """MiniStack's answer of a function; Lambda's Python runtime gives the exception's class as the error type."""
    body = answer.get("body")
    if not answer.get("error") or not isinstance(body, dict) or body.get("errorType") != ANY_EXCEPTION:
        return answer
    name = exception_name(str(answer.get("log", "")), str(body.get("errorMessage", "")))
    return answer if name is None else {**answer, "body": {**body, "errorType": name}}


def exception_name(log: str, message: str) -> str | None:
    """The exception's name in the traceback at the end of ``log``; None without a traceback."""
    head = log.rstrip().removesuffix(message.rstrip()).rstrip()
    last = head.rpartition("\n")[2].removesuffix(":")
    return last.rpartition(".")[2] if last.replace(".", "").isidentifier() else None
