"""The ranges of a suite's numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from traindyno.core.errors import Problem
from traindyno.core.suite.suite import LearningRate, Suite

MAX_RUN_SECONDS = 28 * 24 * 3600
MAX_KEEP_ALIVE_SECONDS = 21_600


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """``above`` is itself not accepted; ``least`` and ``most`` are."""

    above: float | None = None
    least: float | None = None
    most: float | None = None

    def accepts(self, value: float | Decimal) -> bool:
        return (
            (self.above is None or value > self.above)
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
        )

    def __str__(self) -> str:
        parts = [
            f"more than {self.above:g}" if self.above is not None else "",
            f"at least {self.least:g}" if self.least is not None else "",
            f"at most {self.most:g}" if self.most is not None else "",
        ]
        return " and ".join(part for part in parts if part)


POSITIVE = Bound(above=0)
COUNT = Bound(least=1)
NOT_NEGATIVE = Bound(least=0)

SUITE_BOUNDS = {
    "goal.hours": POSITIVE,
    "goal.usd": POSITIVE,
    "workload.examples": COUNT,
    "workload.sequence_length": COUNT,
    "workload.label_count": Bound(least=2),
    "workload.tokenizer.train_vocabulary_size": Bound(least=1),
    "preparation.max_seconds": Bound(least=10, most=MAX_RUN_SECONDS),
    "measurement.trials": Bound(least=1, most=1000),
    "measurement.warmup_steps": NOT_NEGATIVE,
    "measurement.max_steps": COUNT,
    "measurement.stop_when.relative_half_width": Bound(above=0, most=1),
    "limits.max_usd": POSITIVE,
    "limits.max_hours": POSITIVE,
    "limits.max_job_seconds": Bound(least=10, most=MAX_RUN_SECONDS),
    "limits.max_attempts": Bound(least=1, most=100),
    "limits.max_pending_seconds": Bound(least=1800, most=2_419_200),
    "warm_pool_seconds": Bound(least=0, most=MAX_KEEP_ALIVE_SECONDS),
}

SETTINGS_BOUNDS = {
    "instance_count": COUNT,
    "batch_size_per_device": COUNT,
    "gradient_accumulation_steps": COUNT,
    "weight_decay": NOT_NEGATIVE,
    "gradient_clip_norm": POSITIVE,
    "loader_workers": NOT_NEGATIVE,
    "prefetch_factor": COUNT,
    "tensor_degree": COUNT,
    "pipeline_degree": COUNT,
    "micro_batches": COUNT,
    "dropout": Bound(least=0, most=1),
}


def check_bounds(suite: Suite) -> Iterator[Problem]:
    for path, bound in SUITE_BOUNDS.items():
        value: Any = suite
        for name in path.split("."):
            value = getattr(value, name) if value is not None else None
        yield from _check(path.replace("warmup_steps", "warmup"), value, bound)


def check_setting(path: str, name: str, value: Any) -> Iterator[Problem]:
    if name in SETTINGS_BOUNDS:
        yield from _check(path, value, SETTINGS_BOUNDS[name])
    if isinstance(value, LearningRate):
        yield from _check(f"{path}.base", value.base, POSITIVE)
        yield from _check(f"{path}.reference_batch_size", value.reference_batch_size, COUNT)


def _check(path: str, value: Any, bound: Bound) -> Iterator[Problem]:
    if value is not None and not bound.accepts(value):
        yield Problem(path=path, message=f"expected {bound}, got {value}")
