from dataclasses import replace
from typing import Any

import pytest

from tests.unit.serving_in_memory import SAMPLES
from traindyno.core.serving.samples import differences, parse_samples, samples_document

SAMPLE = SAMPLES.samples[0]  # "good" with probability 0.9, "other" with 0.1


def predicted(good: float, other: float) -> dict[str, Any]:
    return {"predictions": [{"label": "good", "score": good}, {"label": "other", "score": other}]}


def test_samples_are_read_as_they_were_written() -> None:
    assert parse_samples(samples_document(SAMPLES)) == SAMPLES


def test_rounding_of_another_machine_is_no_difference() -> None:
    assert differences([SAMPLE], [predicted(0.915, 0.085)]) == []


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (predicted(0.85, 0.15), "got 0.850, expected 'good' with probability 0.900"),
        ({"predictions": [{"label": "LABEL_1", "score": 0.9}]}, "got 0.000, expected 'good' with probability 0.900"),
        ({"error": "busy"}, "got {'error': 'busy'}, expected an object with predictions"),
        ([], "expected an object with predictions"),
    ],
)
def test_another_answer_is_a_difference(answer: Any, problem: str) -> None:
    assert problem in "\n".join(differences([SAMPLE], [answer]))


def test_a_long_text_is_named_by_its_beginning() -> None:
    (problem,) = differences([replace(SAMPLE, inputs="a" * 61)], [[]])
    assert problem.startswith(f"sample 1 ({'a' * 60!r}): ")


def test_label_below_the_listed_ones_counts_as_improbable_and_not_as_missing() -> None:
    assert differences([SAMPLE], [{"predictions": [{"label": "good", "score": 0.9}]}]) == [
        "sample 1 ('a good film'): got 0.000, expected 'other' with probability 0.100"
    ]
