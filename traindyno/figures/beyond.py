"""What a figure has beyond its trials: what they can't decide, and what the work takes besides."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

# A trend over all trials of a cell, or over the places of a job, counts at this two-sided level.
DRIFT_P = 0.01
# A drift may go on for so many times what was seen: its time constant may be this many lengths of a
# run.
DRIFT_GOES_ON = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """Logarithms of the factors by which the truth may lie beside the figure: ``low`` <= 0 <=
    ``high``.
    """

    low: float = 0.0
    high: float = 0.0

    @property
    def is_empty(self) -> bool:
        return self.low == self.high

    def plus(self, other: "Range") -> "Range":
        return Range(low=self.low + other.low, high=self.high + other.high)

    def inverse(self) -> "Range":
        """The range of 1 ÷ the figure."""
        return Range(low=-self.high, high=-self.low)


NO_RANGE = Range()


def range_to(value: float) -> Range:
    """From no factor to this logarithm of one."""
    return Range(low=min(0.0, value), high=max(0.0, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """The fitted change of the step time's logarithm over the steady window, with its error."""

    change: float
    standard_error: float

    @property
    def detected(self) -> float:
        """The change, if it is larger than its error allows; otherwise 0."""
        allowed = NormalDist().inv_cdf(1 - DRIFT_P / 2) * self.standard_error
        return self.change if abs(self.change) > allowed else 0.0

    def against(self, other: "Drift") -> "Drift":
        error = sqrt(self.standard_error**2 + other.standard_error**2)
        return Drift(change=self.change - other.change, standard_error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undecided:
    """What trials leave open of a cell's time per step.

    ``drift`` is the detected change over a run (a logarithm), 0 if there is none.
    ``trend`` is the mean change of the trials, detected or not; None if no trial shows one.
    """

    stalls: Range = NO_RANGE
    drift: float = 0.0
    trend: Drift | None = None

    @property
    def reasons(self) -> tuple[str, ...]:
        reasons = []
        if not self.stalls.is_empty:
            reasons.append("no trial shows whether its stalls recur")
        if self.drift:
            change = f"{self.drift:+.1%}".replace("%", " %")
            reasons.append(f"its step times drift by {change} over a run")
        return tuple(reasons)

    @property
    def range(self) -> Range:
        return self.stalls.plus(_ahead(self.drift))

    def range_against(self, other: "Undecided") -> Range:
        """Range of this ÷ the other. Only a detected difference of their drifts counts.

        A trend that is too small to detect in one cell may still be that of the other.
        """
        drift = self.drift - other.drift
        if (self.drift or other.drift) and self.trend is not None and other.trend is not None:
            drift = self.trend.against(other.trend).detected
        return self.stalls.plus(other.stalls.inverse()).plus(_ahead(drift))


def _ahead(drift: float) -> Range:
    """The range from the window's mean, which is half of the change before its end, to where the
    drift may lead.
    """
    return range_to((DRIFT_GOES_ON + 0.5) * drift)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtraTime:
    """The factor by which a quantity is larger, as a logarithm, with the variance of the cell's own
    failures.

    ``interruptions`` is the range of what is unknown of the rate at which its ``capacity`` fails,
    ``faults`` what is added if faults that hit the cell more than others of its type are its own.
    """

    log_factor: float = 0.0
    variance: float = 0.0
    interruptions: Range = NO_RANGE
    faults: Range = NO_RANGE
    capacity: tuple[str, str] | None = None

    @property
    def range(self) -> Range:
        return self.interruptions.plus(self.faults)

    def range_against(self, other: "ExtraTime") -> Range:
        """Cells on the same capacity are interrupted at the same rate, whichever it is."""
        if self.capacity is not None and self.capacity == other.capacity:
            return self.faults.plus(other.faults.inverse())
        return self.range.plus(other.range.inverse())
