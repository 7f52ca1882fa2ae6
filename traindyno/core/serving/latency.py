"""The latency of an endpoint's requests, sent one after another, and the cost of requests."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from traindyno.core.costs.prices import SECONDS_PER_HOUR

MILLION = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """Seconds from sending a request to receiving the whole answer, at the caller. Percentiles are by nearest rank."""

    requests: int
    mean_seconds: float
    p50_seconds: float
    p90_seconds: float
    p99_seconds: float


def measure_latency(seconds: Sequence[float]) -> Latency:
    """Raises ValueError if there is no request."""
    if not seconds:
        raise ValueError("got none, expected the latency of at least one request")
    ordered = sorted(seconds)
    return Latency(
        requests=len(ordered),
        mean_seconds=sum(ordered) / len(ordered),
        p50_seconds=_percentile(ordered, 50),
        p90_seconds=_percentile(ordered, 90),
        p99_seconds=_percentile(ordered, 99),
    )


def usd_per_million_requests(usd_per_hour: Decimal | None, latency: Latency | None) -> Decimal | None:
    """The cost at an endpoint that answers one request after the other; None if price or latency is unknown.

    An endpoint that answers several requests at once costs less per request; one that waits for requests costs more.
    """
    if usd_per_hour is None or latency is None:
        return None
    return usd_per_hour * Decimal(str(latency.mean_seconds)) * MILLION / SECONDS_PER_HOUR


def _percentile(ordered: Sequence[float], percent: int) -> float:
    return ordered[ceil(percent * len(ordered) / 100) - 1]
