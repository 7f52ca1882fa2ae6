"""The totals of a plan: runs, data, cost, cap and time, each with what it is based on."""

from collections.abc import Iterator
from decimal import Decimal

from rich.table import Table

from traindyno.core.costs.prices import SECONDS_PER_HOUR, Price
from traindyno.core.costs.quantity_text import UNKNOWN, count_text, seconds_text, share_text, usd_text
from traindyno.core.planning.expectation import Expectation
from traindyno.core.planning.plan import Plan
from traindyno.core.planning.preparation_plan import PreparationPlan
from traindyno.core.suite.suite import Purchase, Search, Suite
from traindyno.core.verdict.elimination import first_trials


def totals_table(suite: Suite, planned: Plan, why_none: str | None) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in _facts(suite, planned, why_none):
        table.add_row(name, text)
    return table


def _facts(suite: Suite, planned: Plan, why_none: str | None) -> Iterator[tuple[str, str]]:
    limits, cells = suite.limits, len(planned.cells)
    yield "runs", f"{planned.run_count}: {cells} cells × {suite.measurement.trials} trials; {_lanes_text(planned)}"
    if suite.search is Search.ELIMINATE:
        first = len(first_trials(suite))
        yield "", f"at most: {cells * first} at first ({first} of each cell), then more of the cells that may still win"
    if planned.preparation:
        yield "data", _preparation_text(planned.preparation)
    with_data = "the data, then " if planned.preparation else ""
    once = f"{with_data}every run once, each to its limit of {limits.max_job_seconds} s"
    worst = f"every one of {limits.max_attempts} attempts so"
    yield "cost", expected_cost_text(planned.expected, why_none=why_none)
    yield "", f"{usd_text(planned.one_attempt_usd)} for {once}"
    yield "", f"{usd_text(planned.worst_case_usd)} at worst: {worst}"
    yield "cap", f"{usd_text(limits.max_usd)}{_cap_text(planned, limits.max_usd)}"
    expected_time = expected_time_text(planned.expected)
    yield "time", expected_time or f"{_hours_text(planned.one_attempt_hours)} for {once}"
    if expected_time:
        yield "", f"{_hours_text(planned.one_attempt_hours)} for {once}"
    waiting = f"{worst}, after waiting {limits.max_pending_seconds} s for capacity each time"
    yield "", f"{_hours_text(planned.worst_case_hours)} at worst: {waiting}"
    if planned.worst_case_hours > limits.max_hours:
        yield "", f"limits.max_hours {limits.max_hours} ends it sooner"
    for line in dict.fromkeys(_price_text(lane.price) for lane in planned.lanes if lane.price):
        yield "prices", line
    if suite.purchase is Purchase.SPOT:
        yield "", "on demand: spot has no list price, and what it saves is known from the billed seconds afterwards"


def _preparation_text(preparation: PreparationPlan) -> str:
    each = "job" if preparation.job_count == 1 else "jobs, one after another,"
    usd = usd_text(preparation.one_attempt_usd)
    where = f"{preparation.job_count} {each} on {preparation.instance_type} before the first run"
    return f"tokenised by {where}: {usd} to the limit of {preparation.max_seconds} s, nothing if that was done before"


def _lanes_text(planned: Plan) -> str:
    count = len(planned.lanes)
    return "1 lane" if count == 1 else f"{count} lanes, {planned.lanes_at_once} at once"


def _cap_text(planned: Plan, max_usd: Decimal) -> str:
    if planned.one_attempt_usd is None or planned.worst_case_usd is None or planned.worst_case_usd <= max_usd:
        return ""
    is_tight = planned.one_attempt_usd > max_usd
    covered = f", {share_text(float(max_usd / planned.one_attempt_usd))} of every run once" if is_tight else ""
    return f"{covered}: no run is admitted that could take what is spent and committed beyond it"


def _hours_text(hours: Decimal) -> str:
    return seconds_text(float(hours) * SECONDS_PER_HOUR)


def _price_text(price: Price) -> str:
    return f"{price.source}, {price.region}, {price.as_of}, {price.currency}"


def expected_cost_text(expected: Expectation, *, why_none: str | None) -> str:
    if expected.usd is not None:
        return f"{usd_text(expected.usd)} expected, {_basis_text(expected)}"
    if expected.known_cells == 0:
        return f"{UNKNOWN} what to expect: {why_none or 'no run of these cells has been measured yet'}"
    missing = expected.cells - expected.known_cells
    if not missing:
        return f"{UNKNOWN} what to expect: not every price is known"
    return (
        f"{UNKNOWN} what to expect: {missing} of {expected.cells} cells were never measured;"
        f" {usd_text(expected.usd_of_known)} for the others, {_basis_text(expected)}"
    )


def expected_time_text(expected: Expectation) -> str | None:
    if expected.hours is None:
        return None
    return f"{seconds_text(float(expected.hours) * SECONDS_PER_HOUR)} expected, {_basis_text(expected)}"


def _basis_text(expected: Expectation) -> str:
    runs = "1 earlier run" if expected.past_runs == 1 else f"{count_text(expected.past_runs)} earlier runs"
    return f"from {runs} of these cells{' (simulated)' if expected.is_simulated else ''}"
