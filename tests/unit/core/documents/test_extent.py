from collections.abc import Iterator
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import known
from traindyno.core.documents.extent import LARGEST_INTEGER, MOST_DEPTH, MOST_VALUES, excess_of
from traindyno.core.documents.problems import expected_of, shown


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels - 1):
        value = [value]
    return value


class NotToRead(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        raise AssertionError("a list that is too long was read")


@pytest.mark.parametrize(
    ("fitting", "larger", "message"),
    [
        (nested(MOST_DEPTH), nested(MOST_DEPTH + 1), "too many levels, expected at most 100"),
        # the list itself is a value
        (
            [0] * (MOST_VALUES - 1),
            NotToRead([0] * MOST_VALUES),
            "too many values, expected at most 50000",
        ),
    ],
    ids=["levels", "values"],
)
def test_a_document_may_be_as_large_as_the_limits_and_is_else_refused_unread(
    fitting: Any, larger: Any, message: str
) -> None:
    assert excess_of(fitting) is None
    assert known(excess_of(larger)).message == message


@pytest.mark.parametrize(
    "value", [LARGEST_INTEGER + 1, -LARGEST_INTEGER - 1, float("inf"), float("nan")]
)
def test_numbers_beyond_64_bits_are_named_with_their_place(
    snapshot: Snapshot, value: float
) -> None:
    assert excess_of({"a": [0, LARGEST_INTEGER]}) is None
    problem = known(excess_of({"a": [0, value]}))
    assert problem.path == "a[1]"
    snapshot(problem.message)


@pytest.mark.parametrize(
    ("value", "text"), [(None, "nothing"), ({}, "a mapping with nothing in it")]
)
def test_nothing_is_shown_in_words(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(("kind", "text"), [(int | None, "an integer"), (list[int], "a list")])
def test_the_expected_types_of_a_field_are_said_without_none(kind: object, text: str) -> None:
    assert expected_of(kind) == text


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\udc00\ud800"])
def test_text_beyond_utf_8_is_named_with_its_place(snapshot: Snapshot, text: str) -> None:
    assert excess_of({"a": ["😀 é \u202e", {"é": 1}]}) is None
    for document in ({"a": ["x", text]}, {"a": ["x", {text: 1}]}):
        problem = known(excess_of(document))
        assert problem.path == "a[1]"
        snapshot(problem.message)
