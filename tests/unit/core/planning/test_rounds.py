"""The rounds that a plan counts: all that a race may start, and those of a typical one."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from tests.unit.planned_suites import past_cell, prices_of
from tests.unit.run_samples import completed_result, make_suite
from traindyno.core.jobs.job import Job
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.planning.jobs import runs_again, share_jobs
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.planning.planned_jobs import most_rounds, planned_jobs, typical_rounds
from traindyno.core.suite.choices import GoalKind, Jobs, Search
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Limits, Measurement, Run, Suite
from traindyno.core.verdict.next_round import plan_round
from traindyno.figures.in_job.run_scatter import run_scatter

G5 = "ml.g5.xlarge"
G6 = "ml.g6.xlarge"


def race_of(
    batches: Sequence[int], *, types: Sequence[str] = (G5,), trials: int = 9, **changes: Any
) -> Suite:
    jobs = changes.pop("jobs", Jobs.SHARED)
    given: dict[str, Any] = {
        "examples": 1_000_000,
        "training": {},
        "matrix": {"instance": tuple(types), "batch_size_per_device": tuple(batches)},
        "search": Search.RACE,
        "measurement": Measurement(trials=trials, jobs=jobs),
        "limits": Limits(
            max_usd=Decimal(1000), max_hours=Decimal(400), max_job_seconds=840, max_attempts=3
        ),
        **changes,
    }
    return make_suite(**given)


def plan_of(suite: Suite, seconds: float | None = None) -> Plan:
    """At $1 per instance hour.

    ``seconds``: of an earlier run of each cell, half of them the start of its job.
    """
    known = {
        cell.cell_id: past_cell(
            cell.cell_id,
            seconds,
            overhead_seconds=seconds / 2,
            overhead_billable_seconds=seconds / 2,
        )
        for cell in (suite.cells if seconds else ())
        if seconds
    }
    return plan_suite(
        suite, execution_id="e", prices=prices_of({G5: "1", G6: "1"}), quotas={}, histories=known
    )


def test_the_worst_case_of_a_race_holds_all_of_its_further_jobs() -> None:
    planned = plan_of(race_of([1, 2, 4, 8]))
    # A job of four runs, and four of each cell twice: three attempts and one for each further run,
    # of half an hour
    assert (planned.run_count, planned.lanes[0].job_count, planned.lanes[0].waves) == (36, 5, 5)
    assert planned.one_attempt_usd == Decimal("2.5")
    assert planned.worst_case_usd == Decimal((3 + 3) + 4 * (3 + 7)) / 2
    assert round(planned.one_attempt_hours * 3600) == 5 * 840


def test_of_a_large_group_six_cells_run_again() -> None:
    suite = race_of(range(1, 11), trials=4)
    first, second, third = most_rounds(suite, "e", {})
    assert [len(job.runs) for job in (*first, *second, *third)] == [10, 12, 6]


def test_a_typical_race_runs_two_cells_of_the_largest_group_again_in_its_first_job() -> None:
    suite = race_of(
        [1, 2, 4], types=[G5, G6], exclude=({"instance": G6, "batch_size_per_device": 4},)
    )
    (first,) = typical_rounds(suite, "e", {})
    assert sorted((job.settings.instance, len(job.runs)) for job in first) == [(G5, 3 + 4), (G6, 2)]
    planned = plan_of(suite, seconds=120)
    # 1 + 3 + 4 and 1 + 2 minutes at $1 per hour, one job after another
    assert planned.expected.usd == Decimal(11) / 60
    assert planned.lanes[0].expected.hours == Decimal(8) / 60


def test_a_typical_race_to_a_quality_has_one_further_job() -> None:
    suite = race_of([1, 2, 4])
    suite = replace(suite, goal=Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.8))
    first, further = typical_rounds(suite, "e", {})
    assert [len(job.runs) for job in (*first, *further)] == [3, 4]


@pytest.mark.parametrize("search", [Search.GRID, Search.RACE])
def test_a_single_trial_has_one_round(search: Search) -> None:
    suite = race_of([1, 2], trials=1, search=search)
    for rounds in (most_rounds, typical_rounds):
        assert [len(jobs) for jobs in rounds(suite, "e", {})] == [1]
    (job,) = planned_jobs(suite, "e", {})
    assert (job.count, job.is_further) == (1, False)


def play(suite: Suite, source: Random) -> list[list[Job]]:
    """The jobs of each round, of cells that differ by less than their noise or by more.

    A first job has the further runs of its leaders too.
    """
    cells = suite.cells
    results = list[RunResult]()
    rounds = list[list[Job]]()
    level = {cell.cell_id: source.choice((1.0, 1.0, 1.02, 1.3)) for cell in cells}
    spread = source.choice((0.002, 0.01, 0.03))

    def result_of(run: Run) -> tuple[float, RunResult]:
        step_seconds = level[run.cell.cell_id] * (1 + source.gauss(0, spread))
        result = completed_result(run.cell, run.trial, step_seconds=step_seconds, suite=suite)
        return step_seconds, replace(result, run=replace(run, execution_id="e"))

    while runs := plan_round(
        suite, cells, execution_id="e", round_number=len(rounds) + 1, results=results
    ):
        rounds.append([*share_jobs(runs, suite)])
        for number, job in enumerate(rounds[-1]):
            first = [result_of(run) for run in job.runs]
            best = min(seconds for seconds, _ in first)
            within = run_scatter(job.runs[0].cell.settings.instance).within()
            leaders = {
                result.run.cell.cell_id
                for seconds, result in first
                if seconds < (1 + within) * best
            }
            again = tuple(run for run in runs_again(job, suite) if run.cell.cell_id in leaders)
            results += [result for _, result in (*first, *map(result_of, again))]
            rounds[-1][number] = replace(job, runs=(*job.runs, *again))
    return rounds


def test_no_race_starts_more_jobs_or_runs_than_its_plan_counts() -> None:
    source = Random(29)
    most = 0.0
    for _ in range(12):
        batches = [2**power for power in range(source.randint(1, 5))]
        jobs = source.choice((Jobs.SHARED, Jobs.SHARED, Jobs.SEPARATE))
        suite = race_of(
            batches, types=[G5, G6][: source.randint(1, 2)], trials=source.randint(1, 6), jobs=jobs
        )
        started = play(suite, source)
        planned = plan_of(suite)
        count = sum(len(round_jobs) for round_jobs in started)
        assert count <= sum(lane.job_count or 0 for lane in planned.lanes)
        assert (
            sum(len(job.runs) for round_jobs in started for job in round_jobs) <= planned.run_count
        )
        allowed = most_rounds(suite, "e", {})
        assert len(started) <= len(allowed)
        assert all(
            len(round_jobs) <= len(limit)
            for round_jobs, limit in zip(started, allowed, strict=False)
        )
        most = max(most, count / sum(map(len, allowed)))
    assert most == 1.0
