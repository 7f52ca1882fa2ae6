"""Projections beside actual values: the ratio, and whether the actual value is inside the projected
interval.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.measurement.run_result import RunResult
from traindyno.figures.estimates import Interval

# Seconds, dollars, bytes of the device that needs the most, and a share.
TEXTS: Mapping[str, Callable[[Any], str]]
TEXTS = {"time": seconds_text, "cost": usd_text, "memory": bytes_text, "MFU": share_text}
HEADINGS = ("quantity", "projected", "actual", "actual ÷ projected", "90 % interval")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectedActual:
    """A projected value beside the actual one. None is unknown.

    ``quantity`` is a key of TEXTS. ``interval`` is the interval of one future run. ``cell`` is the
    cell's label.
    """

    quantity: str
    projected: float | None
    interval: Interval | None = None
    actual: float | None = None
    cell: str | None = None

    @property
    def ratio(self) -> float | None:
        return self.actual / self.projected if self.actual is not None and self.projected else None

    @property
    def side(self) -> str | None:
        """Where the actual value is beside the interval."""
        interval = self.interval
        if interval is None or self.actual is None:
            return None
        return (
            "inside"
            if interval.low <= self.actual <= interval.high
            else "above"
            if self.actual > interval.high
            else "below"
        )

    def texts(self) -> tuple[str, str, str, str, str]:
        """Texts of the columns that HEADINGS names."""
        text = TEXTS[self.quantity]
        interval = self.interval
        projected = text(self.projected) + (
            f" ({interval_text(interval.low, interval.high, text)})" if interval else ""
        )
        return (
            self.quantity,
            projected,
            text(self.actual),
            number_text(self.ratio),
            self.side or "no interval",
        )


def job_seconds(results: Iterable[RunResult]) -> float | None:
    """Seconds in which any job had begun; None unless all have ended.

    A wait behind another job on this machine does not count.
    """
    spans = [attempt_span(attempt) for result in results for attempt in result.attempts]
    known = sorted(span for span in spans if span is not None)
    seconds = 0.0
    until = 0.0
    for begin, end in known:
        seconds += max(0.0, end - max(begin, until))
        until = max(until, end)
    return seconds if len(known) == len(spans) else None


def attempt_span(attempt: Attempt) -> tuple[float, float] | None:
    """Epoch seconds of the job's first status and of its end; None unless it has ended."""
    if attempt.ended_at is None:
        return None
    phases = sum(attempt.phase_seconds.values())
    begin = attempt.ended_at - phases if phases else attempt.submitted_at
    return None if begin is None else (begin, attempt.ended_at)


def job_usd(results: Sequence[RunResult]) -> float | None:
    """Cost of the jobs, unrounded; None unless each cost is known."""
    costs = [line.exact_usd for line in write_receipt(results).lines]
    return None if None in costs else float(sum(cost for cost in costs if cost is not None))


def summarise_ratios(comparisons: Sequence[ProjectedActual]) -> dict[str, dict[str, float]]:
    """By quantity: how far actual values are from projected ones, and how many of the intervals
    they are inside of.
    """
    sums = {}
    for quantity in TEXTS:
        own = [comparison for comparison in comparisons if comparison.quantity == quantity]
        ratios = [comparison.ratio for comparison in own if comparison.ratio is not None]
        sides = [comparison.side for comparison in own if comparison.side]
        if ratios:
            ends = {"minimum": min(ratios), "median": median(ratios), "maximum": max(ratios)}
            sums[quantity] = {
                "count": len(ratios),
                **ends,
                "intervals": len(sides),
                "inside": sides.count("inside"),
            }
    return sums
