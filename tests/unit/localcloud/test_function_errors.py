"""The error type of a function that failed is the name of its exception's class, as Lambda gives it."""

import traceback
from typing import Any

import pytest

from localcloud.function_errors import ANY_EXCEPTION, with_error_type
from traindyno.core.errors import Throttled

EXCEPTIONS = [
    Throttled("a call to AWS failed: SlowDown: Please reduce your request rate."),
    Throttled(""),
    KeyError("execution_id"),
    ValueError("two\nlines: of\ntext\n"),
]


def answer_to(error: Exception, logged: str) -> dict[str, Any]:
    """MiniStack composes it of the worker's standard error and the traceback."""
    trace = "".join(["Traceback (most recent call last):\n", *traceback.format_exception_only(error)])
    log = "\n".join(filter(None, [logged, trace]))
    return {"body": {"errorMessage": str(error), "errorType": ANY_EXCEPTION}, "error": True, "log": log}


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
        {"body": {"errorMessage": "Worker process died", "errorType": ANY_EXCEPTION}, "error": True, "log": "a word: "},
        {"body": {"errorMessage": "Task timed out", "errorType": "Sandbox.Timedout"}, "error": True, "log": ""},
    ],
)
def test_every_other_answer_is_unchanged(answer: dict[str, Any]) -> None:
    assert with_error_type(answer) == answer
