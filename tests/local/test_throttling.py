"""Suites while three of ten requests to every API are throttled: all end as they would otherwise.

Two executions, or as many as ``TRAINDYNO_THROTTLED_EXECUTIONS`` says: ``make chaos`` asks for 20.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.local.chaos_lab import ChaosLab, until
from tests.local.oracle import check_finished, find_strays, gather
from tests.local.test_chaos import ENDED, suite_document

EXECUTIONS_VARIABLE = "TRAINDYNO_THROTTLED_EXECUTIONS"
pytestmark = [pytest.mark.local, pytest.mark.timeout(900)]
EXECUTIONS = int(os.environ.get(EXECUTIONS_VARIABLE, "2"))
LANE = "ml.g7e.2xlarge"  # of no other test: they count their lanes' jobs
THROTTLED_SHARE = 0.3
SEED = 11
NAMES = [f"throttled-{number}" for number in range(EXECUTIONS)]


@pytest.fixture(scope="module")
def throttled(chaos: ChaosLab) -> Iterator[ChaosLab]:
    """All executions at once, started before the requests are throttled, and what became of them after."""
    suite = chaos.lab.write_suite("throttled", suite_document((LANE,), 1, 3600))
    chaos.administer("/_local/faults", {"seed": SEED, "throttling_fraction": THROTTLED_SHARE})
    chaos.throttle(THROTTLED_SHARE, SEED)
    try:
        for name in NAMES:
            chaos.start(suite, name)
        until(lambda: all(chaos.execution_status(name) in ENDED for name in NAMES), 800)
    finally:
        chaos.throttle(0.0, SEED)
        chaos.administer("/_local/faults", {})
    yield chaos


@pytest.mark.parametrize("name", NAMES)
def test_an_execution_succeeds_and_its_books_agree(throttled: ChaosLab, name: str) -> None:
    assert throttled.execution_status(name) == "SUCCEEDED"
    receipt: Any = throttled.document("receipt", name)["receipt"]
    evidence = gather(throttled)
    assert check_finished(evidence, name, receipt) == []
    assert find_strays(evidence) == []
    # Throttling costs time only: no run needed a second job.
    assert [len(result["attempts"]) for result in evidence.results(name).values()] == [1] * 3
