"""Runs that shared jobs cost what the jobs were billed, and show of a cell what jobs of their own
would.
"""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest

from tests.unit.core.jobs.written_jobs import written_job
from tests.unit.run_samples import (
    PRICE,
    completed_result,
    failed_result,
    known,
    make_attempt,
    make_cell,
    make_run,
    make_suite,
    result_from,
)
from tests.unit.step_log_samples import file_name, log_lines
from traindyno.core.costs.hazard import measure_success, observe_hazards
from traindyno.core.costs.prices import cost_usd
from traindyno.core.costs.projection import paid_usd, project_run
from traindyno.core.costs.quantity_text import to_cents
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.costs.summarise import summarise
from traindyno.core.jobs.attempt import Attempt, RunShare, trained_seconds
from traindyno.core.jobs.journal import JobJournal, read_job_journal
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_attempts import attempts_of_run
from traindyno.core.jobs.run_end import RunEnd
from traindyno.core.measurement.run_phases import measure_phases
from traindyno.core.measurement.run_result import (
    PaidPrice,
    RunResult,
    parse_run_result,
    run_result_document,
)
from traindyno.core.planning.history import CellHistory, PastRun, expect_job, learn_from
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Run
from traindyno.slices.pricing.lab import observe_discounts

OUTCOMES = (Outcome.COMPLETED, Outcome.COMPLETED, Outcome.OUT_OF_MEMORY, Outcome.USER_CODE_ERROR)
STARTING = 60.0
DOWNLOADING = 20.0
TOOLKIT = 45.0
UPLOADING = 7.0
BEFORE = TOOLKIT + DOWNLOADING


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """A run: its outcome, its steps, and whether the job dies once while it is in progress, after
    ``lost`` seconds.
    """

    run: Run
    outcome: Outcome
    step_seconds: float
    lost: float | None

    @property
    def steps(self) -> list[float]:
        return [10.0] + [self.step_seconds] * 60

    @property
    def own(self) -> float:
        return round(sum(self.steps) + 35.5, 3)


def job(
    name: str,
    trained: float,
    *,
    price: PaidPrice,
    dies: bool = False,
    outcome: Outcome | None = None,
) -> Attempt:
    uploading = {} if dies else {"uploading": UPLOADING}
    training = trained - DOWNLOADING - sum(uploading.values())
    return Attempt(
        number=1,
        job_name=name,
        outcome=None if dies else outcome or Outcome.COMPLETED,
        error="ServiceFault" if dies else None,
        submitted_at=0.0,
        started_at=1_700_000_000.0 - TOOLKIT,
        ended_at=1_700_000_000.0,
        billable_seconds=trained / 2 if price.purchase == "spot" else trained,
        training_seconds=trained,
        phase_seconds={
            "starting": STARTING,
            "downloading": DOWNLOADING,
            "training": training,
            **uploading,
        },
    )


def result_of(work: Work, attempts: Sequence[Attempt], price: PaidPrice) -> RunResult:
    is_logged = work.outcome is Outcome.COMPLETED
    logs = {file_name(job=attempts[-1].job_name): log_lines(step_seconds=work.steps)}
    return result_from(
        read_step_log(logs) if is_logged else None,
        run=work.run,
        outcome=work.outcome,
        attempts=attempts,
        price=price,
    )


def apart(work: Work, price: PaidPrice) -> RunResult:
    lost = (
        []
        if work.lost is None
        else [job(f"{work.run.run_id}-a1", BEFORE + work.lost, price=price, dies=True)]
    )
    last = job(
        f"{work.run.run_id}-a2", BEFORE + work.own + UPLOADING, price=price, outcome=work.outcome
    )
    return result_of(work, [*lost, last], price)


def together(
    job_id: str, group: Sequence[Work], price: PaidPrice, *, dies_early: bool = False
) -> tuple[list[Attempt], list[RunResult]]:
    """One job after another, a further one after each death; ``dies_early``: the first one before
    it began a run.
    """
    attempts: list[Attempt] = []
    told: list[tuple[Attempt, JobJournal | None]] = []
    waiting = list(group)
    if dies_early:
        attempts.append(job(f"{job_id}-a1", BEFORE, price=price, dies=True))
        told.append((attempts[0], None))
    while waiting:
        name = f"{job_id}-a{len(attempts) + 1}"
        written = written_job(name)
        died = False
        for work in list(waiting):
            is_repeated = any(journal and work.run.run_id in journal.began for _, journal in told)
            if work.lost is not None and not is_repeated:
                written.begin(work.run.run_id)
                written.clock += work.lost
                died = True
                break
            written.carry(work.run.run_id, work.own, failure=work.outcome.value)
            waiting.remove(work)
        else:
            written.write("parent_ended")
        trained = BEFORE + written.clock + (0 if died else UPLOADING)
        attempt = job(name, trained, price=price, dies=died)
        attempts.append(attempt)
        told.append((attempt, read_job_journal(written.files, job_name=name, host_count=1)))
    ids = [work.run.run_id for work in group]

    def outcome_of(end: RunEnd) -> tuple[Outcome, str | None]:
        return Outcome(end.failure or ""), None

    results = [
        result_of(
            work, attempts_of_run(work.run.run_id, told, planned=ids, outcome_of=outcome_of), price
        )
        for work in group
    ]
    return attempts, results


def completed_works(
    cells: Sequence[Cell], step_seconds: Sequence[float] = (1.0, 1.0, 1.0)
) -> list[Work]:
    runs = [make_run(cell, trial) for trial, cell in enumerate(cells, start=1)]
    return [
        Work(run=run, outcome=Outcome.COMPLETED, step_seconds=seconds, lost=None)
        for run, seconds in zip(runs, step_seconds, strict=False)
    ]


def random_suite(rng: random.Random, count: int, price: PaidPrice) -> list[Work]:
    cells = [
        make_cell(f"0000000{letter}", label=letter, instance_count=count) for letter in "abcdef"
    ]
    return [
        Work(
            run=make_run(cell, trial),
            outcome=rng.choice(OUTCOMES),
            step_seconds=rng.choice([0.5, 1.0, 2.25]),
            lost=rng.choice([None, None, None, rng.randrange(1, 400) / 4]),
        )
        for cell in cells[: rng.randrange(1, 7)]
        for trial in range(1, rng.randrange(2, 4))
    ]


@pytest.mark.parametrize("purchase", ["on-demand", "spot"])
@pytest.mark.parametrize("seed", range(6))
def test_shared_jobs_cost_their_bills_and_give_the_same_figures_of_cells_as_own_jobs(
    seed: int, purchase: str
) -> None:
    rng = random.Random(seed)
    count = rng.randrange(1, 4)
    price = replace(PRICE, usd_per_instance_hour=Decimal("7.09"), purchase=purchase)
    works = random_suite(rng, count, price)
    rng.shuffle(works)
    size = rng.randrange(2, 6)
    groups = [works[first : first + size] for first in range(0, len(works), size)]
    jobs = []
    shared = []
    early = [rng.random() < 0.5 for _ in groups]
    for index, group in enumerate(groups):
        attempts, results = together(f"j{index}", group, price, dies_early=early[index])
        jobs += attempts
        shared += results
    separate = [apart(work, price) for work in works]
    assert_receipt(jobs, shared, count, price)
    assert measure_success(shared) == measure_success(separate)
    (hazard,) = observe_hazards(shared).values()
    (expected,) = observe_hazards(separate).values()
    assert (
        hazard.count
        == expected.count + sum(early)
        == sum(work.lost is not None for work in works) + sum(early)
    )
    assert hazard.hours == pytest.approx(
        sum(trained_seconds(attempt) or 0.0 for attempt in jobs) * count / 3600
    )
    assert list(observe_discounts(shared).values()) == pytest.approx(
        [0.5] if purchase == "spot" else []
    )
    for result, alone in zip(shared, separate, strict=True):
        assert_projected(result, alone)


def assert_receipt(
    jobs: Sequence[Attempt], results: Sequence[RunResult], count: int, price: PaidPrice
) -> None:
    receipt = write_receipt(results)
    usd = Decimal(str(price.usd_per_instance_hour))
    bills = {
        billed.job_name: cost_usd(Decimal(str(billed.billable_seconds)), count, usd)
        for billed in jobs
    }
    assert receipt.total_usd == to_cents(sum(bills.values(), Decimal(0)))
    for attempt in jobs:
        lines = [line for line in receipt.lines if line.job_name == attempt.job_name]
        assert sum(line.exact_usd or 0 for line in lines) == pytest.approx(bills[attempt.job_name])
        assert abs(sum(line.usd or 0 for line in lines) - bills[attempt.job_name]) < Decimal("0.01")
        spent: dict[str, float] = {}
        for phase in (phase for line in lines for phase in line.phases):
            name = phase.name if phase.name in attempt.phase_seconds else "training"
            spent[name] = spent.get(name, 0.0) + phase.seconds
        assert spent == pytest.approx(attempt.phase_seconds)
    assert float(sum(paid_usd(result) or 0 for result in results)) == pytest.approx(
        float(sum(bills.values()))
    )


def assert_projected(shared: RunResult, alone: RunResult) -> None:
    """What a job that died would have uploaded is unknown."""
    projection = project_run(shared)
    expected = project_run(alone)
    assert (projection is None) == (expected is None)
    missing = 0.0 if "uploading" in shared.attempts[-1].phase_seconds else UPLOADING
    if projection and expected:
        assert projection.seconds + missing == pytest.approx(expected.seconds)
        assert projection.training_overhead_seconds + missing == pytest.approx(
            expected.training_overhead_seconds
        )
        assert projection.billable_share == pytest.approx(expected.billable_share)
        assert projection.before_training_seconds == expected.before_training_seconds
    if not missing and len(shared.attempts) == len(alone.attempts) == 1:
        assert shared.phases_seconds == pytest.approx(alone.phases_seconds)
        summary = summarise(shared)
        assert summary.time.seconds == pytest.approx(sum(alone.phases_seconds.values()))
        assert summary.time.billable_seconds == pytest.approx(alone.billable_seconds)


def test_a_run_in_third_place_is_projected_as_if_it_were_first() -> None:
    _, results = together("j0", completed_works([make_cell()] * 3), PRICE)
    for result in results:
        projection = known(project_run(result))
        # 100,000 samples, 8 a step of 1 s, of which 8 are in the first step, of 10 s: 12,499 s
        # after the overhead. start 60 + 20 + 45, own 105.5 s of which 60 are steady, end 7
        assert projection.seconds == pytest.approx(12_499 + 60 + 20 + 45 + 45.5 + 7)
        assert projection.before_training_seconds == 80


def test_the_lines_of_a_job_add_up_to_its_bill_and_not_only_all_lines_to_the_total() -> None:
    # 3 x 0.4 s and 3 x 0.6 s at 0.01 USD a second: 1.2 and 1.8 cents, where the largest remainders
    # are all in one job
    results = []
    for job_name, seconds in (("a", 0.4), ("b", 0.6)):
        for place in (1, 2, 3):
            share = RunShare(
                own_seconds=seconds, start_seconds=0.0, end_seconds=0.0, place=place, runs=3
            )
            attempt = make_attempt(
                job_name=job_name, billable_seconds=seconds, training_seconds=seconds, share=share
            )
            results.append(replace(completed_result(make_cell(), place), attempts=(attempt,)))
    receipt = write_receipt(results)
    assert receipt.total_usd == Decimal("0.03")
    assert [
        sum(line.usd or 0 for line in receipt.lines if line.job_name == name) for name in "ab"
    ] == [Decimal("0.01"), Decimal("0.02")]
    assert [(line.place, line.runs) for line in receipt.lines[:3]] == [(1, 3), (2, 3), (3, 3)]


def test_a_run_left_without_work_of_a_job_has_a_line_without_cost() -> None:
    share = RunShare(own_seconds=0.0, start_seconds=0.0, end_seconds=0.0, place=0, runs=0)
    attempt = make_attempt(
        billable_seconds=0.0, training_seconds=0.0, outcome=Outcome.INTERNAL_ERROR, share=share
    )
    left = failed_result(make_cell(), 1, Outcome.INTERNAL_ERROR)
    left = replace(
        left,
        attempts=(attempt,),
        phases_seconds=measure_phases([attempt], None, None, warmup_steps=0),
    )
    (line,) = write_receipt([left]).lines
    assert (line.usd, len(line.phases), line.place) == (Decimal(0), 0, 0)
    assert left.phases_seconds == {}
    (hazard,) = observe_hazards([left]).values()
    assert (hazard.count, hazard.hours) == (0, 0)


@pytest.mark.parametrize("purchase", ["on-demand", "spot"])
def test_a_shared_jobs_time_is_expected_from_its_runs_or_some_of_them(purchase: str) -> None:
    price = replace(PRICE, purchase=purchase)
    works = completed_works([make_cell(f"0000000{letter}") for letter in "abc"], (1.0, 2.0, 4.0))
    (attempt,), results = together("j0", works, price)
    histories = [_learned(result) for result in results]
    expected = expect_job(histories)
    assert expected.billable_seconds == pytest.approx(attempt.billable_seconds)
    assert expected.seconds == pytest.approx(sum(attempt.phase_seconds.values()))
    (smaller,), _ = together("j1", works[:2], price)
    assert expect_job(histories[:2]).billable_seconds == pytest.approx(smaller.billable_seconds)
    # one run alone, as after a change to jobs of their own
    alone = apart(works[0], price)
    assert expect_job(histories[:1]).billable_seconds == pytest.approx(alone.billable_seconds)
    # and from runs with jobs of their own, what their step logs do not tell counts once
    separate = expect_job([_learned(apart(work, price)) for work in works])
    unlogged = 35.5 * 2 * (0.5 if purchase == "spot" else 1.0)
    assert separate.billable_seconds == pytest.approx((attempt.billable_seconds or 0) - unlogged)


def _learned(result: RunResult) -> CellHistory:
    past = PastRun(summary=summarise(result), max_steps=make_suite().measurement.max_steps)
    return learn_from(make_suite(), [past])[result.run.cell.cell_id]


def test_a_stored_result_keeps_its_share() -> None:
    _, (_, result) = together("j0", completed_works([make_cell()] * 2), PRICE)
    document = run_result_document(result)
    assert parse_run_result(json.loads(json.dumps(document))).attempts == result.attempts


def test_the_history_of_a_cell_comes_from_jobs_of_one_run() -> None:
    _, (result, _) = together("j0", completed_works([make_cell()] * 2), PRICE)
    time = summarise(result).time
    # 20 + 45 to start, 105.5 for the run, 7 to upload; 60 more that are not billed
    assert (time.billable_seconds, time.seconds) == pytest.approx((177.5, 237.5))
    assert time.overhead_billable_seconds == pytest.approx(72)
