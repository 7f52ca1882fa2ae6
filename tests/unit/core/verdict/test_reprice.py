"""Old measurements at new prices, with the published Trainium comparison as the worked example."""

from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.run_samples import PRICE, completed_result, make_suite
from traindyno.core.costs.prices import Price
from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.reprice import PriceFlip, find_flips, reprice
from traindyno.core.verdict.verdict import judge

P4D, TRN1 = "ml.p4d.24xlarge", "ml.trn1.32xlarge"
# Billed seconds and prices of the published comparison: 6553 s at 37.69, 6033 s at 24.725 USD per hour.
SECONDS = {P4D: 6553.0, TRN1: 6033.0}
BLOG = {P4D: Decimal("37.69"), TRN1: Decimal("24.725")}


def measured(suite: Suite, spread: float = 0.001) -> list[RunResult]:
    """Three trials of each cell, the whole work taking the published time give or take ``spread``."""
    results = []
    for cell in expand_cells(suite):
        name = cell.settings.instance
        for trial, factor in enumerate((1 - spread, 1.0, 1 + spread), start=1):
            seconds = SECONDS[name] * factor
            price = replace(PRICE, usd_per_instance_hour=BLOG[name])
            result = completed_result(cell, trial, suite=suite, price=price)
            # All of the work is done before the steady window, so that the projected time is what was billed beside it.
            billed = seconds + result.phases_seconds["steady"]
            (attempt,) = result.attempts
            attempt = replace(attempt, billable_seconds=billed, phase_seconds={"training": billed})
            results.append(replace(result, examples=1, attempts=(attempt,), billable_seconds=billed))
    return results


def suite_of(goal: Goal | None = None) -> Suite:
    return make_suite(goal=goal, matrix={"instance": (P4D, TRN1)})


def price(instance: str, usd: str) -> dict[str, Price]:
    found = Price(
        instance_type=instance, region="us-west-2", usd_per_hour=Decimal(usd), as_of="2026-11-21", source="a file"
    )
    return {instance: found}


def test_the_published_answer_holds_at_the_published_prices() -> None:
    suite = suite_of()
    repriced = reprice(suite, expand_cells(suite), measured(suite), {})
    p4d, trn1 = (cell.cell_id for cell in expand_cells(suite))
    assert repriced.verdict.recommended == trn1
    assert not repriced.is_flipped
    # the P4d price at which both cost the same: 24.725 x 6033 / 6553 = 22.7630
    assert repriced.flips[0] == PriceFlip(
        instance=P4D, now_usd_per_hour=BLOG[P4D], at_usd_per_hour=Decimal("22.7630"), cell_id=p4d
    )
    # and Trn1's own: 37.69 x 6553 / 6033 = 40.9386
    assert repriced.flips[1] == PriceFlip(
        instance=TRN1, now_usd_per_hour=BLOG[TRN1], at_usd_per_hour=Decimal("40.9386"), cell_id=p4d
    )
    assert round(repriced.flips[0].change, 3) == Decimal("-0.396")


def test_a_price_below_break_even_flips_the_answer() -> None:
    suite = suite_of()
    cells, results = expand_cells(suite), measured(suite)
    assert not reprice(suite, cells, results, price(P4D, "25.251286")).is_flipped
    flipped = reprice(suite, cells, results, price(P4D, "22.50"))
    assert flipped.is_flipped
    assert flipped.verdict.recommended == cells[0].cell_id


def test_every_cost_is_computed_anew_and_says_from_where() -> None:
    suite = suite_of()
    repriced = reprice(suite, expand_cells(suite), measured(suite), price(P4D, "10"))
    p4d, trn1 = repriced.results[1], repriced.results[4]
    assert (p4d.price.usd_per_instance_hour, p4d.price.source) == (Decimal("10"), "a file")
    projection = project_run(p4d)
    assert projection is not None
    # 6553 s at 10 USD/h
    assert projection.usd == Decimal("6553.0") * 10 / 3600
    assert paid_usd(p4d) == Decimal(str(p4d.billable_seconds)) * 10 / 3600
    assert trn1.price.usd_per_instance_hour == BLOG[TRN1]


def test_where_only_time_counts_no_price_flips_anything() -> None:
    suite = suite_of(Goal(kind=GoalKind.FASTEST))
    assert find_flips(judge(suite, expand_cells(suite), measured(suite))) == ()


def test_a_goal_within_a_sum_flips_where_the_sum_is_reached() -> None:
    suite = suite_of(Goal(kind=GoalKind.FASTEST_WITHIN, usd=Decimal("100")))
    (flip,) = find_flips(judge(suite, expand_cells(suite), measured(suite)))
    # the faster Trn1 would cost 100 USD at 100 / (6033 / 3600) = 59.6718; its three trials are 0.1 % apart, so that one
    # more run is up to t(0.95, 2) = 2.92 x 0.1 % x sqrt(1 + 1 / 3) = 0.337 % longer
    assert flip.instance == TRN1
    assert float(flip.at_usd_per_hour) == pytest.approx(59.6718 / 1.00337, rel=1e-4)
    assert flip.cell_id == expand_cells(suite)[0].cell_id


def test_one_instance_type_has_one_price_and_no_flip() -> None:
    suite = make_suite(matrix={"strategy": ("ddp", "fsdp")}, training={"instance": P4D})
    assert find_flips(judge(suite, expand_cells(suite), measured(suite))) == ()


def test_an_answer_without_a_known_cost_has_no_flip() -> None:
    suite = suite_of(Goal(kind=GoalKind.FASTEST))
    verdict = judge(suite, expand_cells(suite), measured(suite))
    best = verdict.recommended
    rows = tuple(
        replace(row, usd=None, usd_per_instance_hour=None) if row.cell_id == best else row for row in verdict.rows
    )
    expected = next(row for row in rows if row.cell_id == best)
    within = replace(verdict, rows=rows, expected=expected, goal=Goal(kind=GoalKind.FASTEST_WITHIN, usd=Decimal("100")))
    assert find_flips(within) == ()
    unpriced = tuple(replace(row, usd_per_instance_hour=None) if row.cell_id == best else row for row in verdict.rows)
    expected = next(row for row in unpriced if row.cell_id == best)
    assert find_flips(replace(within, rows=unpriced, expected=expected)) == ()
