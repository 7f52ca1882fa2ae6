"""One job for several runs: whatever happens, each run has one result, the money is settled once for each job, and no
attempt starts unless runs are left.
"""

import random
from collections import Counter
from collections.abc import Iterable

import pytest

from tests.unit.lab.shared_job_world import World
from tests.unit.lab_in_memory import EXECUTION
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.journal import read_job_journal
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.lab.budget import money_of
from traindyno.store.results import load_results


def result_of(world: World) -> dict[str, RunResult]:
    results = load_results(world.lab.bucket, EXECUTION)
    assert len({each.run.run_id for each in results}) == len(results)
    return {each.run.run_id: each for each in results}


def completions(world: World) -> dict[str, set[bool]]:
    """Of the runs that ended, by their files. A run whose files came late may have ended twice."""
    journals = [read_job_journal(world.files, job_name=name, host_count=1) for name in world.lab.attempt_rows]
    found: dict[str, set[bool]] = {}
    for journal in journals:
        for run_id, end in journal.ends.items():
            found.setdefault(run_id, set()).add(end.exit_code == 0)
    return found


def check_results(world: World) -> None:
    """Each run has one result, which is what its own files say, whatever became of its jobs."""
    results, ended = result_of(world), completions(world)
    assert sorted(results) == sorted(run.run_id for run in world.job.runs)
    for run_id, result in results.items():
        assert world.lab.summary(run_id).outcome is result.outcome
        is_early = any(attempt.billable_seconds is None for attempt in result.attempts)  # its task gave up
        if not is_early:
            assert (result.outcome is Outcome.COMPLETED) in ended.get(run_id, {False})


def check_money(world: World) -> None:
    """Each job is paid once; the shares of its runs add up to its bill to the millisecond."""
    rows = world.lab.attempt_rows
    assert all(row.end is not None and not row.is_open for row in rows.values())
    money = world.lab.money
    assert money.exposed_usd == money.spent_usd == money_of(rows.values(), {}).spent_usd
    shared, unknown = Counter[str](), set[str]()
    for attempt in attempts_in(result_of(world).values()):
        if attempt.billable_seconds is None:
            unknown.add(attempt.job_name)
        shared[attempt.job_name] += round(1000 * (attempt.billable_seconds or 0))
    assert world.times_out or not unknown
    bills = {name: 1000 * (row.end.billable_seconds or 0) for name, row in rows.items() if row.end}
    assert {name: bill for name, bill in bills.items() if bill and name not in unknown} == {
        name: paid for name, paid in shared.items() if paid and name not in unknown
    }


def attempts_in(results: Iterable[RunResult]) -> list[Attempt]:
    return [attempt for result in results for attempt in result.attempts]


def check_attempts(world: World) -> None:
    """The attempts count from 1, an attempt starts while runs are left only, and idle ones are limited."""
    rows = sorted(world.lab.attempt_rows.values(), key=lambda row: row.number)
    assert [row.number for row in rows] == list(range(1, len(rows) + 1))
    assert all(row.end is not None and row.end.outcome is None for row in rows[:-1])
    started = [row for row in rows if row.job_name in world.lab.jobs.jobs]
    idle = [row for row in started if not read_job_journal(world.files, job_name=row.job_name, host_count=1).ends]
    assert len(idle) <= world.max_attempts


@pytest.mark.parametrize("seed", range(60))
def test_every_run_has_one_result_and_every_job_is_paid_once(seed: int) -> None:
    """Events come late, twice, in any order or never; files are lost; calls are throttled and functions killed."""
    source = random.Random(seed)
    world = World(
        source,
        run_count=source.randint(2, 4),
        rate=source.choice([0.0, 0.02, 0.1]),
        loses_files=source.choice([0.0, 0.0, 0.2]),
        times_out=source.choice([0.0, 0.0, 0.1]),
        stops=source.choice([0.0, 0.0, 0.1]),
    )
    world.run_to_end()
    if not world.lab.attempt_rows:
        assert world.is_stopped, "nothing was started, and nobody stopped it"
        return
    check_results(world)
    check_money(world)
    check_attempts(world)
