"""What was projected beside what came of it: the ratio, and whether it is inside the projected
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
    """``quantity`` is a key of TEXTS.

    ``interval`` is that of one future run. ``cell``: its label. None is unknown.
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
        found = self.interval
        if found is None or self.actual is None:
            return None
        return (
            "inside"
            if found.low <= self.actual <= found.high
            else "above"
            if self.actual > found.high
            else "below"
        )

    def texts(self) -> tuple[str, str, str, str, str]:
        """What HEADINGS name."""
        text = TEXTS[self.quantity]
        found = self.interval
        projected = text(self.projected) + (
            f" ({interval_text(found.low, found.high, text)})" if found else ""
        )
        return (
            self.quantity,
            projected,
            text(self.actual),
            number_text(self.ratio),
            self.side or "no interval",
        )


def job_seconds(results: Iterable[RunResult]) -> float | None:
    """In which any job had begun: a wait behind another job on this machine is none of theirs.

    None unless all have ended.
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
    """Epoch seconds of its job's first status and of its end; None unless it has ended."""
    if attempt.ended_at is None:
        return None
    phases = sum(attempt.phase_seconds.values())
    begin = attempt.ended_at - phases if phases else attempt.submitted_at
    return None if begin is None else (begin, attempt.ended_at)


def job_usd(results: Sequence[RunResult]) -> float | None:
    """Unrounded; None unless the cost of each job is known."""
    costs = [line.exact_usd for line in write_receipt(results).lines]
    return None if None in costs else float(sum(each for each in costs if each is not None))


def summarise_ratios(found: Sequence[ProjectedActual]) -> dict[str, dict[str, float]]:
    """By quantity: how far actual values are from projected ones, and how many of the intervals
    they are inside of.
    """
    sums = {}
    for quantity in TEXTS:
        own = [each for each in found if each.quantity == quantity]
        ratios = [each.ratio for each in own if each.ratio is not None]
        sides = [each.side for each in own if each.side]
        if ratios:
            ends = {"minimum": min(ratios), "median": median(ratios), "maximum": max(ratios)}
            sums[quantity] = {
                "count": len(ratios),
                **ends,
                "intervals": len(sides),
                "inside": sides.count("inside"),
            }
    return sums
