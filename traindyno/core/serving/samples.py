"""Evaluation samples of a training job, and the check of a served model against them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.suite.choices import Task

SAMPLES = Format(name="evaluation samples", version=1)
# Kernels of another machine or PyTorch version change single-precision probabilities in the fourth
# digit at most.
SCORE_TOLERANCE = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredLabel:
    """A label or token, and its probability."""

    label: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSample:
    """A sample with the answer of the training job.

    ``predictions`` are the most probable ones of the saved model, computed by the training job.
    """

    inputs: str
    predictions: tuple[ScoredLabel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationSamples:
    task: Task
    samples: tuple[EvaluationSample, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds from sending a request to receiving the whole answer, at the caller.

    Percentiles are by nearest rank.
    """

    requests: int
    mean_seconds: float
    p50_seconds: float
    p99_seconds: float

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Latency":
        ordered = sorted(seconds)
        p50, p99 = (ordered[ceil(percent * len(ordered) / 100) - 1] for percent in (50, 99))
        return cls(
            requests=len(ordered),
            mean_seconds=sum(ordered) / len(ordered),
            p50_seconds=p50,
            p99_seconds=p99,
        )


def samples_document(samples: EvaluationSamples) -> dict[str, Any]:
    return SAMPLES.mark(to_document(samples))


def parse_samples(document: Mapping[str, Any]) -> EvaluationSamples:
    return from_document(SAMPLES.read(document), EvaluationSamples)


def differences(samples: Sequence[EvaluationSample], answers: Sequence[bytes]) -> Iterator[str]:
    """One line for each answer that differs from the training job's by more than
    ``SCORE_TOLERANCE``.
    """
    for sample, answer in zip(samples, answers, strict=True):
        about = f"sample {sample.inputs[:60]!r}"
        try:
            scores = {
                str(prediction["label"]): float(prediction["score"])
                for prediction in json.loads(answer)["predictions"]
            }
        except (ValueError, TypeError, LookupError, RecursionError):
            yield (
                f"{about}: got {answer.decode(errors='replace')[:200]}, expected an object with "
                "predictions"
            )
            continue
        for expected in sample.predictions:
            # A label near the end of the list may change places with one that is not listed.
            score = scores.get(expected.label, 0.0)
            if not abs(score - expected.score) <= SCORE_TOLERANCE:  # NaN differs too
                yield (
                    f"{about}: got {score:.3f}, expected {expected.label!r} with probability "
                    f"{expected.score:.3f}"
                )
