"""One measurement at several prices, and old measurements at new prices: the published Trainium
comparison.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from math import expm1

import pytest

from tests.unit.core.verdict.test_reservations import on_host
from tests.unit.core.verdict.test_time_to_quality import FASTEST as FASTEST_TO
from tests.unit.core.verdict.test_time_to_quality import evaluated
from tests.unit.core.verdict.test_time_to_quality import suite_of as evaluated_suite
from tests.unit.report.test_report import report_of
from tests.unit.run_samples import PRICE, completed_result, make_suite, remeasured
from traindyno.core.costs.full_run import checkpoint_seconds
from traindyno.core.costs.hazard import observe_hazards
from traindyno.core.costs.prices import Price
from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.documents.stored import to_document
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.stalls import RecurringEvent
from traindyno.core.run.workload import FullRun
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal, Pricing, SpotTerms
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.report_data import parse_report, report_document
from traindyno.core.verdict.verdict import Finding
from traindyno.features import FEATURES
from traindyno.figures.hosts import HostClass, HostPriors, HostSpread
from traindyno.report.html import render
from traindyno.slices.pricing.client import reprice
from traindyno.slices.pricing.lab import PART, PricedOption, observe_discounts, price_options

P4D = "ml.p4d.24xlarge"
TRN1 = "ml.trn1.32xlarge"
# Billed seconds and prices of the published comparison: 6553 s at 37.69, 6033 s at 24.725 USD per
# hour.
SECONDS = {P4D: 6553.0, TRN1: 6033.0}
BLOG = {P4D: Decimal("37.69"), TRN1: Decimal("24.725")}


def measured(suite: Suite, spread: float = 0.001) -> list[RunResult]:
    """Three trials of each cell, the whole work taking the published time give or take
    ``spread``.
    """
    results = []
    for cell in suite.cells:
        name = cell.settings.instance
        for trial, factor in enumerate((1 - spread, 1.0, 1 + spread), start=1):
            seconds = SECONDS[name] * factor
            price = replace(PRICE, usd_per_instance_hour=BLOG[name])
            result = completed_result(cell, trial, suite=suite, price=price)
            # All of the work is done before the steady window, so that the projected time is what
            # was billed beside it.
            billed = seconds + result.phases_seconds["steady"]
            (attempt,) = result.attempts
            attempt = replace(attempt, billable_seconds=billed, phase_seconds={"training": billed})
            results.append(
                replace(result, examples=1, attempts=(attempt,), billable_seconds=billed)
            )
    return results


def record_of(
    suite: Suite, results: Sequence[RunResult], priors: HostPriors | None = None
) -> ExecutionRecord:
    cells = suite.cells
    return ExecutionRecord(
        execution_id="e", suite=suite, cells=cells, results=tuple(results), host_priors=priors
    )


def price(instance: str, usd: str) -> dict[str, Price]:
    given = Price(
        instance_type=instance,
        region="us-west-2",
        usd_per_hour=Decimal(usd),
        as_of="2026-11-21",
        source="a file",
    )
    return {instance: given}


def test_the_published_answer_holds_at_the_published_prices() -> None:
    suite = suite_of()
    repriced = reprice(record_of(suite, measured(suite)), {})
    p4d, trn1 = (cell.cell_id for cell in suite.cells)
    assert repriced.verdict.recommended == trn1
    assert not repriced.is_flipped
    # the P4d price at which both cost the same: 24.725 x 6033 / 6553 = 22.7630
    (break_even,) = repriced.verdict.sensitivity.break_evens
    assert (break_even.cell_id, break_even.instance, break_even.usd_per_instance_hour) == (
        p4d,
        P4D,
        Decimal("22.7630"),
    )


def test_a_price_below_break_even_flips_the_answer() -> None:
    suite = suite_of()
    record = record_of(suite, measured(suite))
    assert not reprice(record, price(P4D, "25.251286")).is_flipped
    flipped = reprice(record, price(P4D, "22.50"))
    assert flipped.is_flipped
    assert flipped.verdict.recommended == record.cells[0].cell_id


def test_every_cost_is_computed_anew_and_says_from_where() -> None:
    suite = suite_of()
    repriced = reprice(record_of(suite, measured(suite)), price(P4D, "10"))
    p4d = repriced.results[1]
    trn1 = repriced.results[4]
    assert (p4d.price.usd_per_instance_hour, p4d.price.source) == (Decimal("10"), "a file")
    projection = project_run(p4d)
    assert projection is not None
    # 6553 s at 10 USD/h
    assert projection.usd == Decimal("6553.0") * 10 / 3600
    assert paid_usd(p4d) == Decimal(str(p4d.billable_seconds)) * 10 / 3600
    assert trn1.price.usd_per_instance_hour == BLOG[TRN1]


def suite_of(**pricing: object) -> Suite:
    return make_suite(matrix={"instance": (P4D, TRN1)}, pricing=Pricing(**pricing))  # type: ignore[arg-type]


def on_spot(result: RunResult, *, billed: float, interruptions: int = 0) -> RunResult:
    """The same job on spot, of whose training time a share was billed."""
    (attempt,) = result.attempts
    training = attempt.phase_seconds["training"]
    return replace(
        remeasured(result, interruptions=interruptions),
        attempts=(replace(attempt, training_seconds=training, billable_seconds=training * billed),),
        price=replace(result.price, purchase="spot"),
    )


def options_of(suite: Suite, results: list[RunResult]) -> dict[str, PricedOption]:
    return {option.name: option for option in price_options(record_of(suite, results))}


def test_spot_prices_name_the_flips_of_the_verdict() -> None:
    """Trainium's $41.43 beat $68.61 on demand. P4d at 60 % off costs $27.44."""
    suite = suite_of(spot={P4D: SpotTerms(discount=0.6, interruptions_per_hour=0)})
    p4d, trn1 = (cell.cell_id for cell in suite.cells)
    options = options_of(suite, measured(suite))
    assert list(options) == ["on demand, us-west-2", "spot, us-west-2"]
    demand, spot = options.values()
    assert (demand.recommended, demand.is_flipped) == (trn1, False)
    # 6553 s x $37.69 / 3600 and 6033 s x $24.725 / 3600
    assert demand.usd[p4d] == pytest.approx(68.606, rel=1e-3)
    assert demand.usd[trn1] == pytest.approx(41.435, rel=1e-3)
    assert (spot.recommended, spot.is_flipped) == (p4d, True)
    assert spot.usd == {p4d: pytest.approx(68.606 * 0.4, rel=1e-3)}
    assert (
        "60% off, 0 interruptions per instance-hour (no run shows it; prior: given in the suite)"
        in spot.basis
    )


def test_other_prices_are_judged_with_the_verdicts_own_host_priors() -> None:
    """Each cell ran on one host: whether 5 % are a difference depends on the spread between
    hosts.
    """
    suite = suite_of(
        spot={name: SpotTerms(discount=0.0, interruptions_per_hour=0) for name in (P4D, TRN1)}
    )
    cells = suite.cells
    results = [
        on_host(
            completed_result(cell, trial, step_seconds=seconds * (1 + trial / 10_000), suite=suite),
            cell.cell_id,
        )
        for cell, seconds in zip(cells, (1.0, 1.05), strict=True)
        for trial in (1, 2, 3)
    ]
    history = dict.fromkeys(
        HostClass, HostSpread(deviation=0.002, typical=0.002, degrees_of_freedom=20, source="past")
    )
    for prior in (None, history):
        finding = judge(suite, cells, results, host_priors=prior).finding
        options = price_options(record_of(suite, results, prior))
        assert [option.finding for option in options] == [finding, finding]
    assert finding is Finding.RECOMMENDED


def test_an_observed_discount_counts_first_and_a_given_rate_as_much_as_one_hour() -> None:
    suite = suite_of(spot={P4D: SpotTerms(discount=0.9, interruptions_per_hour=0.5)})
    results = [
        on_spot(result, billed=0.3, interruptions=1)
        if result.run.cell.settings.instance == P4D
        else result
        for result in measured(suite)
    ]
    assert observe_discounts(results) == {P4D: pytest.approx(0.7)}
    hours = sum(result.attempts[0].phase_seconds["training"] for result in results[:3]) / 3600
    hazard = observe_hazards(results, suite.pricing.spot)[P4D, "spot"]
    assert hazard.count == 3
    assert hazard.hours == pytest.approx(hours)
    assert hazard.per_instance_hour == pytest.approx((3 + 0.5) / (hours + 1))


def test_a_measurement_on_spot_is_priced_on_demand_for_all_of_its_training_time() -> None:
    suite = suite_of()
    p4d, _ = (cell.cell_id for cell in suite.cells)
    plain = measured(suite)
    paid = [
        on_spot(result, billed=0.3) if result.run.cell.settings.instance == P4D else result
        for result in plain
    ]
    options = options_of(suite, paid)
    assert options["on demand, us-west-2"].usd[p4d] == pytest.approx(68.606, rel=1e-3)
    # 0.05 interruptions an hour by the prior; three jobs of 6,613 s had none
    exposure = 0.05 / (1 + 3 * 6613 / 3600) * 6553 / 3600
    assert options["spot, us-west-2"].usd[p4d] == pytest.approx(
        68.606 * 0.3 * expm1(exposure) / exposure, rel=1e-3
    )
    # as it was paid, P4d on spot won; on demand, Trainium does
    assert options["on demand, us-west-2"].is_flipped
    assert not options["spot, us-west-2"].is_flipped


def spot_of(suite: Suite, results: list[RunResult]) -> PricedOption:
    return options_of(suite, results)["spot, us-west-2"]


def test_lost_work_and_restarts_lengthen_time_and_cost_by_hand() -> None:
    """36,109 s of training: 110 s once, and 287,992 samples at 8 a second; a checkpoint an hour."""
    terms = SpotTerms(discount=0.5, interruptions_per_hour=0.1)
    suite = make_suite(
        matrix={"instance": (P4D, TRN1)}, examples=288_000, pricing=Pricing(spot={P4D: terms})
    )
    p4d, trn1 = (cell.cell_id for cell in suite.cells)
    plain = [completed_result(cell, trial, suite=suite) for cell in suite.cells for trial in (1, 2)]
    results = [replace(result, checkpoint_every_steps=3600) for result in plain]
    spot = spot_of(suite, results)
    demand = options_of(suite, results)["on demand, us-west-2"]
    # 20 s to download and 10 s of a first step come again: exp(0.1 x 30 / 3600) x (exp(0.1) - 1) /
    # 0.1
    factor = 1.000834 * 1.051709
    # and 60 s to start, each of the 0.1 x 36,109 / 3600 x factor = 1.0558 times
    assert spot.seconds[p4d] == pytest.approx(60 + 36_109 * factor + 1.0558 * 60, rel=1e-5)
    # $36 an hour, half of it on spot
    assert spot.usd[p4d] == pytest.approx(36_109 * factor * 18 / 3600, rel=1e-5)
    # on demand 1.6e-4 an hour, after two fault-free runs of 170 s
    exposure = 1.6e-4 / (1 + 2 * 170 / 3600)
    assert demand.usd[p4d] == pytest.approx(
        36_109 * 36 / 3600 * expm1(exposure) / exposure, rel=1e-5
    )
    assert trn1 not in spot.usd
    assert (
        "0.1 interruptions per instance-hour (no run shows it; prior: given in the suite)"
        in spot.basis
    )
    assert spot.basis.endswith("lost work and restarts included")


def test_a_faster_cell_may_lose_on_spot_by_more_interruptions_of_its_type() -> None:
    terms = {
        P4D: SpotTerms(discount=0.5, interruptions_per_hour=0.2),
        TRN1: SpotTerms(discount=0.5),
    }
    suite = make_suite(
        goal=Goal(kind=GoalKind.FASTEST),
        matrix={"instance": (P4D, TRN1)},
        examples=288_000,
        pricing=Pricing(spot=terms),
    )
    cells = suite.cells
    results = [
        completed_result(cell, trial, step_seconds=seconds * (1 + trial / 1000), suite=suite)
        for cell, seconds in zip(cells, (1.0, 1.2), strict=True)
        for trial in (1, 2, 3)
    ]
    assert judge(suite, cells, results).recommended == cells[0].cell_id
    spot = spot_of(suite, results)
    assert (spot.recommended, spot.is_flipped) == (cells[1].cell_id, True)


def test_the_time_to_a_target_is_longer_with_interruptions() -> None:
    """92 % is reached after 70 s of training."""
    terms = SpotTerms(discount=0.5, interruptions_per_hour=20)
    suite = replace(evaluated_suite(FASTEST_TO), pricing=Pricing(spot={"ml.p4d.24xlarge": terms}))
    cell = suite.cells[0]
    spot = spot_of(suite, [evaluated(cell, trial, suite) for trial in (1, 2)])
    # (exp(20 x 70 / 3600) - 1) / (20 x 70 / 3600), on 70 s: without a checkpoint, the start is
    # repeated with the rest
    longer = 70 * 1.222302
    restarts = 20 / 3600 * longer
    assert spot.seconds[cell.cell_id] == pytest.approx(80 + longer + restarts * 60, rel=1e-4)


def test_time_between_checkpoints_is_the_setting_by_the_measured_step_time() -> None:
    terms = SpotTerms(discount=0.6, interruptions_per_hour=0.5)
    plain = suite_of(spot={P4D: terms})
    suite = replace(plain, measurement=replace(plain.measurement, checkpoint_every_steps=1000))
    first = measured(suite)[0]
    assert first.measured is not None
    assert first.measured.throughput is not None
    hours = 1000 / first.measured.throughput.steps_per_second / 3600
    assert checkpoint_seconds(first) == pytest.approx(hours * 3600)
    assert checkpoint_seconds(measured(plain)[0]) is None
    p4d, _ = (cell.cell_id for cell in suite.cells)
    without, with_them = (
        options_of(priced, measured(priced))["spot, us-west-2"].usd[p4d]
        for priced in (plain, suite)
    )
    # the first step, of 10 s, comes again: exp(0.5 x 10 / 3600)
    once = 68.606 * 0.4 * 1.00139
    lost = expm1(0.5 * hours) / (0.5 * hours)
    assert with_them == pytest.approx(once * lost, rel=1e-3)
    # without checkpoints all of the 6553 s, the start among them
    whole = 0.5 * 6553 / 3600
    assert without == pytest.approx(68.606 * 0.4 * expm1(whole) / whole, rel=1e-3)


def test_the_full_runs_schedule_counts_before_the_log_and_the_setting_last() -> None:
    (result, *_) = measured(suite_of())
    assert result.measured is not None
    assert result.measured.throughput is not None
    event = RecurringEvent(name="checkpoint", count=4, steps_between=25.0, seconds=1.0)
    logged = replace(remeasured(result, recurring=(event,)), checkpoint_every_steps=1000)
    assert checkpoint_seconds(logged) == pytest.approx(
        25 / result.measured.throughput.steps_per_second
    )
    given = replace(logged, full_run=FullRun(checkpoint_every_minutes=30))
    assert checkpoint_seconds(given) == 1800


def test_the_report_names_the_prices_changing_the_verdict() -> None:
    suite = suite_of(spot={P4D: SpotTerms(discount=0.6, interruptions_per_hour=0)})
    results = measured(suite)
    report = replace(
        report_of(results, suite),
        parts={PART: to_document(price_options(record_of(suite, results)))},
    )
    page = render(report, FEATURES)
    assert "Another cell is recommended if you pay: spot, us-west-2." in page
    assert (
        "60% off, 0 interruptions per instance-hour (no run shows it; prior: given in the suite)"
        in page
    )
    # 6553 s on P4d: of spot in the summary, and beside its cost in the column of spot
    assert page.count("109 min") >= 2
    assert parse_report(report_document(report)) == report


def test_a_job_of_less_than_a_billed_second_has_a_price_on_demand_and_none_on_spot() -> None:
    """What spot would have billed of so short a job is not known."""
    suite = suite_of(spot={P4D: SpotTerms(discount=0.6, interruptions_per_hour=0)})
    results = [
        replace(
            result,
            attempts=(
                replace(result.attempts[0], training_seconds=0.7, phase_seconds={"training": 0.7}),
            ),
        )
        for cell in suite.cells
        for result in (completed_result(cell, trial, suite=suite) for trial in (1, 2))
    ]
    demand, spot = options_of(suite, results).values()
    assert set(demand.usd) == {cell.cell_id for cell in suite.cells}
    assert spot.usd == {}
