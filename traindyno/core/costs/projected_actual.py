"""What was projected beside what came of it: the ratio, and whether it is inside the projected interval."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from traindyno.core.costs.quantity_text import (
    bytes_text,
    interval_text,
    number_text,
    seconds_text,
    share_text,
    usd_text,
)
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.documents.stored import to_document
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.estimates import Interval

# Seconds, dollars, bytes of the device that needs the most, and a share.
TEXTS: Mapping[str, Callable[[Any], str]] = {
    "time": seconds_text,
    "cost": usd_text,
    "memory": bytes_text,
    "MFU": share_text,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedActual:
    """``quantity`` is a key of TEXTS. ``interval`` is that of one future run. None is unknown."""

    quantity: str
    projected: float | None
    interval: Interval | None = None
    actual: float | None = None

    @property
    def ratio(self) -> float | None:
        return self.actual / self.projected if self.actual is not None and self.projected else None

    @property
    def is_inside(self) -> bool | None:
        found = self.interval
        return None if found is None or self.actual is None else found.low <= self.actual <= found.high

    @property
    def span(self) -> str:
        """``49.2 to 63.0 s``; empty without an interval."""
        found = self.interval
        return interval_text(found.low, found.high, TEXTS[self.quantity]) if found else ""

    @property
    def projection(self) -> str:
        """``56.1 s (49.2 to 63.0 s)``."""
        return TEXTS[self.quantity](self.projected) + (f" ({self.span})" if self.interval else "")

    @property
    def side(self) -> str:
        """Where the actual value is beside the interval; empty if that is unknown."""
        if self.interval is None or self.actual is None:
            return ""
        return "inside" if self.is_inside else "above" if self.actual > self.interval.high else "below"

    def texts(self) -> tuple[str, str, str, str, str]:
        """What HEADINGS name."""
        actual = TEXTS[self.quantity](self.actual)
        return self.quantity, self.projection, actual, number_text(self.ratio), self.side or "no interval"


HEADINGS = ("quantity", "projected", "actual", "actual ÷ projected", "90 % interval")


def to_json(found: ProjectedActual) -> dict[str, Any]:
    return {**to_document(found), "ratio": found.ratio, "is_inside": found.is_inside}


def job_seconds(results: Iterable[RunResult]) -> float | None:
    """From the creation of the first job to the end of the last one; None unless all have ended."""
    attempts = [attempt for result in results for attempt in result.attempts]
    begins = [each.submitted_at for each in attempts if each.submitted_at is not None]
    ends = [each.ended_at for each in attempts if each.ended_at is not None]
    if len(begins) < len(attempts) or len(ends) < len(attempts):
        return None
    return max(0.0, max(ends, default=0.0) - min(begins, default=0.0))


def job_usd(results: Sequence[RunResult]) -> float | None:
    """Unrounded; None unless the cost of each job is known."""
    costs = [line.exact_usd for line in write_receipt(results).lines]
    return None if None in costs else float(sum(each for each in costs if each is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratios:
    """How far actual values were from projected ones: ``held`` of ``intervals`` had the actual value inside."""

    quantity: str
    count: int
    minimum: float
    median: float
    maximum: float
    intervals: int
    held: int


def summarise_ratios(found: Sequence[ProjectedActual]) -> Iterator[Ratios]:
    """One for each quantity that has a ratio."""
    for quantity in TEXTS:
        own = [each for each in found if each.quantity == quantity]
        ratios = [each.ratio for each in own if each.ratio is not None]
        inside = [each.is_inside for each in own if each.is_inside is not None]
        if ratios:
            yield Ratios(
                quantity=quantity,
                count=len(ratios),
                minimum=min(ratios),
                median=median(ratios),
                maximum=max(ratios),
                intervals=len(inside),
                held=sum(inside),
            )
