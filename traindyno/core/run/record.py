"""The record of a run or of a preparation, which its container reads: plain values, checked when
the lab writes them.

Later code may write more fields. A container ignores fields that it does not know.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

from traindyno.core.documents.field_description import COUNT, Bound, describe, described
from traindyno.core.documents.plain import plain_values
from traindyno.core.documents.stored import from_document
from traindyno.core.documents.versions import Format
from traindyno.core.errors import TraindynoError
from traindyno.core.run.settings import Settings
from traindyno.core.run.tokens import DataPreparation, Tokens
from traindyno.core.run.workload import STEPS, Workload, workload_document
from traindyno.core.suite.choices import Quality, SaveDtype

RECORD = Format(name="record of a run", version=1)
Record = TypeVar("Record", bound="RunRecord | PreparationRecord")


class RecordDiffers(TraindynoError):
    """A container would read other values than the lab has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StopWhen:
    relative_half_width: float = field(
        metadata=describe(
            "ends a run once its mean step time is known within this share",
            bound=Bound(above=0, most=1),
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasurement:
    """What a job does for a measurement, and what it leaves."""

    trials: int = described(
        5,
        "runs of each cell, in a race of each leading cell at most; an interval needs two",
        bound=Bound(least=1, most=1000),
        default="9 in a race, 5 in a grid, 3 of a cell without others",
    )
    warmup: int | None = described(
        None,
        "steps that don't count; auto finds the change point in the step times",
        bound=Bound(least=0, most=10**9),
        none_word="auto",
    )
    stop_when: StopWhen | None = described(
        None,
        (
            "{relative_half_width: 0.01} ends a run once its mean step time is known within 1 %, "
            "at 400 steps or later"
        ),
    )
    max_steps: int = described(
        200,
        "the most optimizer steps of one run",
        bound=STEPS,
        default=(
            "20 in a race, and of one cell, that name nothing about the length of runs, else 200"
        ),
    )
    least_seconds: float | None = described(
        None,
        (
            "a run trains beyond max_steps until its steps have lasted so long; it sets their "
            "number after its fifth counted step; not for script"
        ),
        bound=Bound(above=0, most=24 * 3600),
        default="2 where max_steps is 20, else none",
    )
    evaluate: bool = described(False, "evaluate on dataset.evaluation_split at the end")
    evaluate_every_steps: int | None = described(
        None,
        "also evaluate during the run, after every so many steps; the time to a quality needs it",
        bound=COUNT,
        default="at the end only",
    )
    save_model: bool = described(False, "keep the trained model")
    save_dtype: SaveDtype = described(
        SaveDtype.CHECKPOINT,
        "the type of the saved weights: as in the model's files, to which they are rounded after "
        "the last step and evaluated so; or fp32, which keeps all bits",
    )
    save_best: bool = described(
        False,
        (
            "keep the model of the evaluation with the lowest loss too, in the folder best of "
            "the checkpoints"
        ),
    )
    checkpoint_every_steps: int | None = described(
        None,
        "write a checkpoint after every so many steps; the run's next attempt resumes from it; "
        "on spot also before an interruption, if it can be written within the 120 s that "
        "SageMaker gives",
        bound=STEPS,
        default="no checkpoints, except before a spot interruption",
    )

    @property
    def evaluates(self) -> bool:
        return self.evaluate or self.evaluate_every_steps is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityTarget:
    """The quality that a run must reach: accuracy of at least ``value``, loss or perplexity of at
    most ``value``.
    """

    quality: Quality
    value: float

    def __str__(self) -> str:
        return f"{self.quality} {self.text(self.value)}"

    def text(self, value: float) -> str:
        """The text of a value of this quality: ``90 %``, ``2.5``."""
        return f"{value * 100:.4g} %" if self.quality is Quality.ACCURACY else f"{value:.4g}"

    def is_reached(self, value: float) -> bool:
        return value >= self.value if self.quality is Quality.ACCURACY else value <= self.value

    def best(self, values: Iterable[float]) -> float:
        return max(values) if self.quality is Quality.ACCURACY else min(values)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What a container needs to know about its run.

    ``settings`` has the seed of the cell; ``trial_seed`` is the trial's own, if it has one.
    ``tokens`` are already prepared; None if the run tokenises its own data.
    """

    run_id: str
    workload: Workload
    settings: Settings
    measurement: RunMeasurement
    tokens: Tokens | None = None
    target: QualityTarget | None = None
    trial_seed: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationRecord:
    """A job that makes tokens for the runs of an execution, or copies their model."""

    preparation: DataPreparation
    workload: Workload


def record_document(record: RunRecord | PreparationRecord) -> dict[str, Any]:
    """Document of a record, with one JSON value for each field.

    Each value is a hyperparameter of its own, for which SageMaker has a limit. Raises
    RecordDiffers.
    """
    document = RECORD.mark({**plain_values(record), "workload": workload_document(record.workload)})
    read = read_record(json.loads(json.dumps(document)), type(record))
    for part in fields(record):
        value = getattr(read, part.name)
        expected = getattr(record, part.name)
        if value != expected:
            raise RecordDiffers(f"{part.name}: a container would read {value}, expected {expected}")
    return document


def read_record(document: Mapping[str, Any], kind: type[Record]) -> Record:
    """Read a record. Raises VersionUnknown."""
    return from_document(RECORD.read(document), kind)
