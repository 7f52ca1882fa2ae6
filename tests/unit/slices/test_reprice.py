"""Old measurements at new prices, with the published Trainium comparison as the worked example."""

from dataclasses import replace
from decimal import Decimal

from tests.unit.run_samples import PRICE, completed_result, make_suite
from traindyno.core.costs.prices import Price
from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.suite import Suite
from traindyno.slices.pricing.client import reprice

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


def suite_of() -> Suite:
    return make_suite(matrix={"instance": (P4D, TRN1)})


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
    (found,) = repriced.verdict.sensitivity.break_evens
    assert (found.cell_id, found.instance, found.usd_per_instance_hour) == (p4d, P4D, Decimal("22.7630"))


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
