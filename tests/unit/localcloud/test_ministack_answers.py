"""A failed function's error type is its exception's class, as Lambda gives it, and a task takes one
answer.
"""

import threading
import traceback
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from localcloud.ministack_answers import (
    ANY_EXCEPTION,
    EXIT_ERROR,
    WORKER_ENDED,
    WaitingTasks,
    with_error_type,
)
from traindyno.core.errors import Throttled

EXCEPTIONS = [
    Throttled("a call to AWS failed: SlowDown: Please reduce your request rate."),
    Throttled(""),
    KeyError("execution_id"),
    ValueError("two\nlines: of\ntext\n"),
]


def answer_to(error: Exception, logged: str) -> dict[str, Any]:
    """MiniStack composes it of the worker's standard error and the traceback."""
    trace = "".join(
        ["Traceback (most recent call last):\n", *traceback.format_exception_only(error)]
    )
    log = "\n".join(filter(None, [logged, trace]))
    return {
        "body": {"errorMessage": str(error), "errorType": ANY_EXCEPTION},
        "error": True,
        "log": log,
    }


@pytest.mark.parametrize("logged", ["", '{"level": "ERROR", "message": "PlanSuite"}\n'])
@pytest.mark.parametrize("error", EXCEPTIONS, ids=repr)
def test_the_type_is_the_class_of_the_exception(error: Exception, logged: str) -> None:
    named = with_error_type(answer_to(error, logged))
    assert named["body"] == {"errorMessage": str(error), "errorType": type(error).__name__}
    assert named["error"]


@pytest.mark.parametrize(
    "answer",
    [
        {"body": {"errorType": "of a result"}},
        {"body": None},
        {
            "body": {"errorMessage": "no traceback", "errorType": ANY_EXCEPTION},
            "error": True,
            "log": "a word: ",
        },
        {
            "body": {"errorMessage": "Task timed out", "errorType": "Sandbox.Timedout"},
            "error": True,
            "log": "",
        },
    ],
)
def test_every_other_answer_is_unchanged(answer: dict[str, Any]) -> None:
    assert with_error_type(answer) == answer


@pytest.mark.parametrize("name", [ANY_EXCEPTION, "RuntimeError"])
@pytest.mark.parametrize("message", WORKER_ENDED)
def test_a_killed_function_has_the_error_type_of_lambda(message: str, name: str) -> None:
    answer = {
        "body": {"errorMessage": f"{message}. stderr: ", "errorType": name},
        "error": True,
        "log": "WARN: no",
    }
    assert with_error_type(answer)["body"]["errorType"] == EXIT_ERROR


def test_a_task_takes_one_answer_and_others_are_left_to_ministack() -> None:
    tasks: dict[str, dict[str, Any]] = {
        token: {"event": threading.Event()} for token in ("first", "second")
    }
    taken = []

    def take(data: Mapping[str, Any]) -> str:
        taken.append(data["taskToken"])
        if data["taskToken"] in tasks:
            tasks[data["taskToken"]]["event"].set()
        return "taken"

    machines = SimpleNamespace(
        _execute_task=None,
        _invoke_with_callback=None,
        _call_lambda=None,
        _send_task_success=take,
        _send_task_failure=take,
        _task_tokens=tasks,
        error_response_json=lambda *_: "refused",
    )
    WaitingTasks(machines).install()
    succeed = machines._send_task_success
    fail = machines._send_task_failure
    assert [
        fail({"taskToken": "first"}),
        succeed({"taskToken": "first"}),
        fail({"taskToken": "first"}),
    ] == [
        "taken",
        "refused",
        "refused",
    ]
    assert succeed({"taskToken": "second"}) == "taken"
    # an unknown token gets MiniStack's own error
    succeed({"taskToken": "unknown"})
    assert taken == ["first", "second", "unknown"]
