"""What a search by a model knows of the cost of a trial."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.run_samples import completed_result, make_suite
from traindyno.core.measurement.run_result import PaidPrice, RunResult
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Search, Strategy
from traindyno.core.verdict.evidence import gather_evidence

SUITE = make_suite(
    matrix={"strategy": (Strategy.DDP, Strategy.FSDP)},
    training={"instance": "ml.p4d.24xlarge", "instance_count": 2},
    search=Search.MODEL,
)


def costs(usd_per_hour: Decimal | None, **changes: object) -> list[float]:
    price = PaidPrice(usd_per_instance_hour=usd_per_hour)
    results: list[RunResult] = [
        replace(completed_result(cell, 1, suite=SUITE, price=price), **changes)  # type: ignore[arg-type]
        for cell in expand_cells(SUITE)
    ]
    survey = gather_evidence(SUITE, expand_cells(SUITE), results).survey
    assert survey is not None
    return [forecast.cost for forecast in survey.forecasts]


def test_a_trial_costs_what_was_paid_else_its_instance_hours_else_the_same() -> None:
    # 170 s on two instances at a cent a second each
    assert costs(Decimal(36)) == pytest.approx([3.40, 3.40])
    assert costs(None) == pytest.approx([340 / 3600] * 2)
    assert costs(None, billable_seconds=None) == pytest.approx([1.0, 1.0])
