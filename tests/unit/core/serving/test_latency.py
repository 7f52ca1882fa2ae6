from decimal import Decimal

import pytest

from traindyno.core.serving.latency import Latency, measure_latency, usd_per_million_requests


def test_percentiles_are_by_nearest_rank() -> None:
    # 1 to 100 ms: the 50th, 90th and 99th of 100 values in order
    latency = measure_latency([number / 1000 for number in range(100, 0, -1)])
    assert (latency.p50_seconds, latency.p90_seconds, latency.p99_seconds) == (0.050, 0.090, 0.099)
    assert latency.mean_seconds == pytest.approx(0.0505)
    assert measure_latency([0.2]) == Latency(
        requests=1, mean_seconds=0.2, p50_seconds=0.2, p90_seconds=0.2, p99_seconds=0.2
    )
    with pytest.raises(ValueError, match="at least one request"):
        measure_latency([])


def test_a_million_requests_one_after_another_cost_their_time_at_the_price() -> None:
    # 0.018 s × 1,000,000 = 18,000 s = 5 h; 5 h × $0.204 = $1.02
    assert usd_per_million_requests(Decimal("0.204"), measure_latency([0.018])) == pytest.approx(Decimal("1.02"))
    assert usd_per_million_requests(None, measure_latency([0.018])) is None
    assert usd_per_million_requests(Decimal("0.204"), None) is None
