"""The totals of a plan, each with its basis, and its jobs: which cells share one, and why a run is
alone.
"""

from collections.abc import Iterator
from decimal import Decimal

from rich.table import Table

from traindyno.cli.output import titled_table
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    count_text,
    counted,
    seconds_text,
    share_text,
    time_limit_text,
    usd_text,
)
from traindyno.core.planning.expectation import Expectation
from traindyno.core.planning.job_terms import run_terms
from traindyno.core.planning.plan import Plan, prices_of
from traindyno.core.planning.planned_jobs import PlannedJob, planned_jobs
from traindyno.core.planning.preparation_plan import PreparationPlan
from traindyno.core.run.processes import global_batch_size, world_size
from traindyno.core.run.workload import Model
from traindyno.core.search.largest_batch import (
    FEW_PROBES,
    LONGEST_PROBE_SECONDS,
    MOST_PROBES,
    PROBE_STEPS,
)
from traindyno.core.step_log.line import SEED_VARIABLE
from traindyno.core.suite.choices import Jobs, Purchase, Task
from traindyno.core.suite.job_time import ENDING_SECONDS
from traindyno.core.suite.preparation import names_commit
from traindyno.core.suite.runs import compares_seeds, trial_seed
from traindyno.core.suite.suite import Confirm, Suite
from traindyno.core.suite.suite_file import SECONDS_OF_A_RACE

#: Fewer steps say little of a rate.
FEWEST_STEPS = 5
ORDER_NOTE = (
    "the order in a job is drawn for each execution, in a race's first job after the baseline "
    "that the suite names; the next job of the same cells has it reversed"
)


def jobs_of_plan(suite: Suite, planned: Plan) -> list[PlannedJob]:
    """Empty where each run has its own job by the suite's choice."""
    if suite.measurement.jobs is Jobs.SEPARATE:
        return []
    histories = {history.cell_id: history for history in planned.history}
    return planned_jobs(suite, planned.execution_id, histories)


def job_table(suite: Suite, planned: Plan) -> Table:
    headings = (">jobs", "instances", "runs~", ">at most", ">one job at most", "alone because~")
    table = titled_table("jobs", *headings)
    prices = {lane.instance_type: lane.price for lane in planned.lanes}
    cells = {cell.cell_id: cell for cell in planned.cells}
    for job in jobs_of_plan(suite, planned):
        price = prices[job.instance]
        first = cells[job.cell_ids[0]]
        usd = run_terms(first.settings, suite).worst_case_usd(price.usd_per_hour) if price else None
        labels = ", ".join(cells[cell_id].label for cell_id in job.cell_ids)
        if job.is_further:
            several = len(job.cell_ids) > 1
            again = (
                "once"
                if job.runs == 1
                else "forward and backward"
                if several
                else f"{job.runs} times"
            )
            which = f"up to {len(job.cell_ids)} cells" if several else labels
            labels = f"again, if close behind the best one: {which}, {again}"
        table.add_row(
            f"up to {job.count}" if job.is_further else str(job.count),
            f"{job.instance_count} × {job.instance}",
            labels,
            seconds_text(job.longest_seconds),
            UNKNOWN if usd is None else usd_text(usd),
            job.why_alone or "",
        )
    return table


def totals_table(suite: Suite, planned: Plan, why_none: str | None) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, text in _facts(suite, planned, why_none):
        table.add_row(name, text)
    return table


def _preparation_facts(
    suite: Suite, preparation: PreparationPlan, ending: str
) -> Iterator[tuple[str, str]]:
    yield (
        "data" if preparation.makes_tokens else "model",
        _preparation_text(preparation, ending),
    )
    if preparation.stages_model and suite.workload.model:
        name = "model" if preparation.makes_tokens else ""
        yield name, _copy_text(preparation, suite.workload.model)


def _facts(suite: Suite, planned: Plan, why_none: str | None) -> Iterator[tuple[str, str]]:
    terms = run_terms(planned.cells[0].settings, suite)
    image = "for the image, " if terms.image_seconds else ""
    ending = f"{terms.image_seconds + ENDING_SECONDS} s {image}to stop and to upload"
    lanes = counted(len(planned.lanes), "lane")
    at_once = f", {planned.lanes_at_once} in parallel" if len(planned.lanes) > 1 else ""
    yield "runs", f"{_runs_text(suite, planned)}; {lanes}{at_once}"
    for text in (measured_text(suite, planned), short_script_text(suite, planned)):
        if text:
            yield "", text
    if suite.measurement.confirm is not None:
        yield "confirm", confirm_text(planned, suite.measurement.confirm)
    yield "seeds", seeds_text(suite, planned.cells[0].settings.seed)
    if any(cell.settings.batch_search for cell in planned.cells):
        yield "batch", probes_text(suite, planned)
    if planned.preparation:
        yield from _preparation_facts(suite, planned.preparation, ending)
    yield from _limit_facts(suite, planned, why_none, ending)
    yield from _price_facts(suite, planned)


def _limit_facts(
    suite: Suite, planned: Plan, why_none: str | None, ending: str
) -> Iterator[tuple[str, str]]:
    """Cost and time: expected, with one attempt of each job, and in the worst case.

    Args:
        suite: Suite with its limits.
        planned: Plan of the suite.
        why_none: Why nothing is expected, if so.
        ending: What each attempt takes beside its limit.
    """
    limits = suite.limits
    is_shared = suite.measurement.jobs is Jobs.SHARED
    before = f"the {planned.preparation.label} and " if planned.preparation else ""
    owner = "job" if is_shared else "run"
    once = f"if {before}every {owner} takes one attempt of {limits.max_job_seconds} s (its limit)"
    more = ", and one more for each further run of the job," if is_shared else ""
    attempts = {1: "the attempt", 2: "both attempts"}.get(
        limits.max_attempts, f"all {limits.max_attempts} attempts"
    )
    reach = "reaches" if limits.max_attempts == 1 else "reach"
    worst = f"worst case: {attempts} of every {owner}{more} {reach} the limit"
    yield "cost", expected_cost_text(planned.expected, why_none=why_none)
    yield "", f"{usd_text(planned.one_attempt_usd)} {once} and {ending}"
    if planned.worst_case_usd is None or planned.worst_case_usd <= limits.max_usd:
        yield "", f"{usd_text(planned.worst_case_usd)} {worst}, and each takes {ending}"
    yield "cap", f"{usd_text(limits.max_usd)}{_cap_text(planned, limits.max_usd)}"
    yield "time", expected_time_text(planned.expected)
    yield "", f"{_hours_text(planned.one_attempt_hours)} {once}"
    if planned.worst_case_hours > limits.max_hours:
        yield "", f"{time_limit_text(limits.max_hours)} stops the suite, whatever repeats"
    else:
        waiting = f"{worst}, after {limits.max_pending_seconds} s of waiting for capacity"
        yield "", f"{_hours_text(planned.worst_case_hours)} {waiting}"


def _price_facts(suite: Suite, planned: Plan) -> Iterator[tuple[str, str]]:
    prices = [lane.price for lane in planned.lanes if lane.price]
    lines = [f"{price.source}, {price.region}, {price.as_of}, {price.currency}" for price in prices]
    for line in dict.fromkeys(lines):
        yield "prices", line
    if suite.purchase is Purchase.SPOT:
        yield (
            "",
            (
                "on-demand prices: spot has no list price; the billed seconds show the saving "
                "afterwards"
            ),
        )
        if planned.expected.known_cells:
            yield (
                "spot",
                (
                    "the expected cost has the discount and the interruptions that earlier runs "
                    "observed"
                ),
            )


def _runs_text(suite: Suite, planned: Plan) -> str:
    cells = len(planned.cells)
    trials = suite.measurement.trials
    is_shared = suite.measurement.jobs is Jobs.SHARED
    in_jobs = (
        f" in {counted(sum(lane.job_count for lane in planned.lanes), 'job')}" if is_shared else ""
    )
    if suite.search.is_race:
        again = f", then only cells close behind the best one, up to {counted(trials, 'time')} each"
        return f"at most {planned.run_count}{in_jobs}: {cells} in the first round{again}"
    return f"{planned.run_count}: {counted(cells, 'cell')} × {counted(trials, 'trial')}{in_jobs}"


def confirm_text(planned: Plan, confirm: Confirm) -> str:
    hourly = [
        lane.price.usd_per_hour * lane.largest_instance_count
        for lane in planned.lanes
        if lane.price
    ]
    is_known = len(hourly) == len(planned.lanes)
    usd = usd_text(max(hourly) * Decimal(2 * confirm.minutes) / 60 if is_known else None)
    long = f"the two leading cells once more, {confirm.minutes:g} min each"
    return f"{long}: {usd} and the start of a job; a further job in the figures below"


def measured_text(suite: Suite, planned: Plan) -> str | None:
    """A caution where measuring trains on more than the whole work has; None elsewhere, and for a
    script, which decides itself how long a run is.
    """
    work = suite.workload.examples
    settings = [cell.settings for cell in planned.cells]
    sizes = [(setting, world_size(setting)) for setting in settings if setting.batch_search is None]
    batches = [global_batch_size(setting, processes) for setting, processes in sizes if processes]
    if suite.workload.task is Task.SCRIPT or not batches:
        return None
    steps = suite.measurement.max_steps
    measured = (
        sum(min(work, steps * batch) for batch in batches) * planned.run_count // len(batches)
    )
    if measured <= work:
        return None
    fewer = work * len(batches) // (planned.run_count * sum(batches))
    less = (
        f"max_steps: {fewer} measures no more than that"
        if fewer >= FEWEST_STEPS
        else "one run of each cell is less"
    )
    least = "up to" if suite.measurement.least_seconds is None else "at least"
    problem = f"they train on {least} {measured:,} examples, the whole work has {work:,}"
    return (
        f"{problem}: measuring costs more than it can save; {less}, or give examples the size of "
        f"the "
        "work that you mean"
    )


def short_script_text(suite: Suite, planned: Plan) -> str | None:
    """Where earlier runs of a script trained for so short a time that they say little."""
    known = (past.trained_seconds for past in planned.history)
    least = min(filter(None, known), default=SECONDS_OF_A_RACE)
    if suite.workload.task is not Task.SCRIPT or least >= SECONDS_OF_A_RACE:
        return None
    return (
        f"an earlier run trained for {seconds_text(least)} only: what else the machine did in it "
        f"decides; let the script do more steps, {SECONDS_OF_A_RACE:g} s of them at least"
    )


def probes_text(suite: Suite, planned: Plan) -> str:
    """What the probes of a largest batch may take: they are part of the job, and of its limit."""
    searching = [cell.settings for cell in planned.cells if cell.settings.batch_search]
    seconds = min(MOST_PROBES * LONGEST_PROBE_SECONDS, suite.limits.max_job_seconds)
    prices = prices_of(planned)
    hours = Decimal(seconds) / SECONDS_PER_HOUR
    known = [
        prices[setting.instance].usd_per_hour * setting.instance_count
        for setting in searching
        if setting.instance in prices
    ]
    usd = sum(known, Decimal(0)) * hours if len(known) == len(searching) else None
    count = "1 cell searches its" if len(searching) == 1 else f"{len(searching)} cells search their"
    return (
        f"{count} batch before the first trial: up to {MOST_PROBES} probes of {PROBE_STEPS} steps "
        f"each, or {FEW_PROBES} where the first batch is within a factor of four of the largest "
        f"one, at most {seconds_text(seconds)} for each cell and {usd_text(usd)} in all, within "
        "the limit and the amounts below"
    )


def seeds_text(suite: Suite, first: int) -> str:
    """With which seeds the trials train, and how a script gets them."""
    if compares_seeds(suite):
        return "the seeds of the cells, in all trials: the suite compares seeds"
    last = trial_seed(first, suite.measurement.trials)
    seed = (
        f"{first}"
        if first == last
        else f"{first} to {last}, one for each trial, the same in all cells"
    )
    if suite.workload.task is not Task.SCRIPT:
        return seed
    argument = suite.measurement.seed_argument
    if argument is not None:
        return f"{seed}, as the argument {argument}"
    return (
        f"{seed}, in {SEED_VARIABLE}; if the script does not take it, losses and quality hold for "
        "its own seed only"
    )


def _preparation_text(preparation: PreparationPlan, ending: str) -> str:
    jobs = "job" if preparation.job_count == 1 else "jobs, one after another,"
    usd = usd_text(preparation.one_attempt_usd)
    where = f"{preparation.job_count} {jobs} on {preparation.instance_type} before the first run"
    cost = f"{usd} at the limit of {preparation.max_seconds} s and {ending}"
    if preparation.makes_tokens:
        what = "tokenised, and the model copied," if preparation.stages_model else "tokenised"
        return f"{what} by {where}: {cost}; no job if the tokens exist"
    return f"copied by {where}: {cost}"


def _copy_text(preparation: PreparationPlan, model: Model) -> str:
    is_there = any(
        token_set.stages_model and token_set.is_ready for token_set in preparation.tokens
    )
    how = (
        "the lab's bucket has it from the Hub"
        if is_there
        else "one of these jobs copies it from the Hub to the lab's bucket"
    )
    revision = (
        "no revision" if model.revision is None else f"revision {model.revision} is no commit"
    )
    again = "" if names_commit(model) else f"; {revision}: copied again for each execution"
    return f"{model.path}: {how}; every run reads it there{again}"


def _cap_text(planned: Plan, max_usd: Decimal) -> str:
    if (
        planned.one_attempt_usd is None
        or planned.worst_case_usd is None
        or planned.worst_case_usd <= max_usd
    ):
        return ""
    is_tight = planned.one_attempt_usd > max_usd
    covered = (
        f", {share_text(float(max_usd / planned.one_attempt_usd))} of one attempt of every run"
        if is_tight
        else ""
    )
    return f"{covered}: a run starts only if its worst case fits under the cap"


def _hours_text(hours: Decimal) -> str:
    return seconds_text(float(hours) * SECONDS_PER_HOUR)


def expected_cost_text(expected: Expectation, *, why_none: str | None) -> str:
    if expected.usd is not None:
        return f"{usd_text(expected.usd)} expected, {_basis_text(expected)}"
    if expected.known_cells == 0:
        return (
            f"expected cost {UNKNOWN}: {why_none or 'no run of these cells has been measured yet'}"
        )
    missing = expected.cells - expected.known_cells
    if not missing:
        return f"expected cost {UNKNOWN}: a price is unknown"
    return (
        f"expected cost {UNKNOWN}: {missing} of {expected.cells} cells have no measurement;"
        f" {usd_text(expected.usd_of_known)} for the others, {_basis_text(expected)}"
    )


def expected_time_text(expected: Expectation) -> str:
    if expected.hours is None:
        return f"expected time {UNKNOWN}: no basis before each cell has been measured once"
    return (
        f"{seconds_text(float(expected.hours) * SECONDS_PER_HOUR)} expected, "
        f"{_basis_text(expected)}"
    )


def _basis_text(expected: Expectation) -> str:
    runs = (
        "1 earlier run"
        if expected.past_runs == 1
        else f"{count_text(expected.past_runs)} earlier runs"
    )
    return f"from {runs} of these cells{' (simulated)' if expected.is_simulated else ''}"
