"""A plan as a person reads it in a terminal."""

from collections.abc import Iterator
from decimal import Decimal

from rich.console import Console
from rich.table import Table

from traindyno.cli.expectation_text import expected_cost_text, expected_time_text
from traindyno.cli.plan_history import FoundHistories
from traindyno.cli.plan_inputs import PlanInputs
from traindyno.cli.quota_table import quota_table
from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.prices import SECONDS_PER_HOUR, Price, cost_usd
from traindyno.core.costs.quantity_text import UNKNOWN, count_text, seconds_text, share_text, usd_text
from traindyno.core.planning.plan import LanePlan, Plan
from traindyno.core.planning.preparation_plan import PreparationPlan
from traindyno.core.suite.suite import Purchase, Search, Suite
from traindyno.core.verdict.elimination import first_trials

MOST_CELLS = 30


def print_plan(console: Console, suite: Suite, planned: Plan, inputs: PlanInputs, histories: FoundHistories) -> None:
    if len(planned.cells) <= MOST_CELLS:
        console.print(_cells(suite, planned))
    else:
        console.print(f"{suite.name}: {len(planned.cells)} cells, listed by --format json", markup=False)
    console.print()
    console.print(_lanes(suite, planned))
    if inputs.quotas:
        console.print()
        console.print(quota_table(inputs))
    console.print()
    console.print(_totals(suite, planned, histories.why_none))
    for note in planned.notes:
        console.print(f"note: {note}", markup=False)


def _cells(suite: Suite, planned: Plan) -> Table:
    table = Table(title=f"{suite.name}: cells", title_justify="left", pad_edge=False)
    table.add_column("cell")
    table.add_column("what varies", overflow="fold")
    table.add_column("instances")
    table.add_column("one run to its limit", justify="right")
    prices = {lane.instance_type: lane.price for lane in planned.lanes}
    for cell in planned.cells:
        count, price = cell.settings.instance_count, prices[cell.settings.instance]
        usd = cost_usd(suite.limits.max_job_seconds, count, price.usd_per_hour) if price else None
        table.add_row(cell.cell_id, cell.label, f"{count} × {cell.settings.instance}", usd_text(usd))
    return table


def _lanes(suite: Suite, planned: Plan) -> Table:
    table = Table(title="lanes", title_justify="left", pad_edge=False)
    table.add_column("instance")
    for heading in ("runs", "largest", "quota", "in use", "at once", "waves", "$/h", "expected", "once", "at worst"):
        table.add_column(heading, justify="right")
    for lane in planned.lanes:
        table.add_row(*_lane_cells(lane))
    return table


def _lane_cells(lane: LanePlan) -> tuple[str, ...]:
    quota = lane.quota
    return (
        f"{lane.instance_type} (spot)" if lane.purchase is Purchase.SPOT else lane.instance_type,
        str(lane.run_count),
        f"{lane.largest_instance_count} ×",
        count_text(quota.limit) if quota else "-",
        count_text(quota.in_use) if quota else "-",
        str(lane.concurrency),
        str(lane.waves),
        exact_usd_text(lane.price.usd_per_hour) if lane.price else UNKNOWN,
        usd_text(lane.expected.usd),
        usd_text(lane.one_attempt_usd),
        usd_text(lane.worst_case_usd),
    )


def _totals(suite: Suite, planned: Plan, why_none: str | None) -> Table:
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
