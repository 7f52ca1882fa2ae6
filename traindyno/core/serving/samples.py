"""Evaluation samples of a training job with the answers of its model, and the check of a served model against them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.suite.choices import Task

SAMPLES = Format(name="evaluation samples", version=1)
# Kernels of another machine or PyTorch version change single-precision probabilities in the fourth digit at most.
SCORE_TOLERANCE = 0.02
CONTENT_TYPE, LINES_CONTENT_TYPE = "application/json", "application/jsonlines"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredLabel:
    """A label or token, and its probability."""

    label: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSample:
    """``predictions``: the most probable ones of the saved model, computed by the training job."""

    inputs: str
    predictions: tuple[ScoredLabel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSamples:
    task: Task
    samples: tuple[EvaluationSample, ...]


def samples_document(samples: EvaluationSamples) -> dict[str, Any]:
    return SAMPLES.mark(to_document(samples))


def parse_samples(document: Mapping[str, Any]) -> EvaluationSamples:
    return from_document(SAMPLES.read(document), EvaluationSamples)


def request_of(sample: EvaluationSample) -> str:
    """The request that asks for the sample's answer, as JSON on one line."""
    return json.dumps({"inputs": sample.inputs})


def read_answer(text: str) -> Any:
    """The document of an answer; the text itself where it is not JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def differences(samples: Sequence[EvaluationSample], answers: Sequence[Any]) -> list[str]:
    """One line for each answer that differs from the training job's by more than ``SCORE_TOLERANCE``; empty if all
    agree.
    """
    return [
        f"sample {number} ({sample.inputs[:60]!r}): {problem}"
        for number, (sample, answer) in enumerate(zip(samples, answers, strict=True), start=1)
        for problem in _problems(sample, answer)
    ]


def _problems(sample: EvaluationSample, answer: Any) -> Iterator[str]:
    found = answer.get("predictions") if isinstance(answer, Mapping) else None
    if not isinstance(found, list):
        yield f"got {str(answer)[:200]}, expected an object with predictions"
        return
    scores = {str(each["label"]): float(each["score"]) for each in found}
    for expected in sample.predictions:
        # A label near the end of the list may change places with one that is not listed.
        score = scores.get(expected.label, 0.0)
        if abs(score - expected.score) > SCORE_TOLERANCE:
            yield f"got {score:.3f}, expected {expected.label!r} with probability {expected.score:.3f}"
