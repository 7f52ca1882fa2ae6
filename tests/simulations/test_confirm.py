"""What begins after the end of every trial, or recurs too rarely for them, misleads a race; long
runs correct it.
"""

import random
from collections.abc import Callable
from math import exp

import pytest

from tests.simulations.decisions import share_of
from tests.simulations.logged_runs import result_of, session_of
from tests.simulations.processes import Event, Simulated
from tests.simulations.repetitions import TIMES
from tests.simulations.suites.simulated_suite import cells_of, make_suite
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.step_log.line import CHECKPOINT
from traindyno.core.suite.choices import Search
from traindyno.core.suite.suite import Confirm, Measurement
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round
from traindyno.core.verdict.verdict import Verdict

TRIAL_STEPS = 200
SUITES = 12
# The first cell leads in its trials; by the whole work it is behind. A step of it takes 1 s.
Hidden = Callable[[list[float]], Simulated]


def throttled(steps: list[float]) -> Simulated:
    """By 12 % after 300 s; the other cell is slower by 5 % from the begin."""
    passed = 0.0
    passing = []
    for seconds in steps:
        passing.append(seconds * (1.12 if passed > 300 else 1.0))
        passed += passing[-1]
    return Simulated(step_seconds=passing, long_run_seconds=1.12)


def rarely_long_checkpoint(steps: list[float]) -> Simulated:
    """Each 20th of those that come each 50 steps takes 60 s: 6 %, against 3 % of the other cell."""
    events = [
        Event(step=step, seconds=60.0 if step % 1000 == 900 else 0.2, name=CHECKPOINT)
        for step in range(50, len(steps), 50)
    ]
    return Simulated(step_seconds=steps, long_run_seconds=1.064, events=events)


def plain(steps: list[float]) -> Simulated:
    return Simulated(step_seconds=steps, long_run_seconds=1.0)


def race(
    hidden: Hidden, *, other: float, confirm: Confirm | None, seed: int, noise: float = 0.003
) -> Verdict:
    """The verdict of a race with the second cell's step ÷ the first one's, and the noise of a run's
    level.
    """
    measurement = Measurement(trials=9, max_steps=TRIAL_STEPS, confirm=confirm)
    suite = make_suite(
        trials=9,
        matrix={"loader_workers": (0, 1)},
        training={},
        measurement=measurement,
        search=Search.RACE,
    )
    cells = cells_of(suite)
    results = list[RunResult]()
    number = 1
    while runs := plan_round(
        suite, cells, execution_id=f"race {seed}", round_number=number, results=results
    ):
        for job in share_jobs(runs, suite):
            source = random.Random(f"{seed} {job.job_id}")
            host = source.gauss(0, 0.01)
            for run in job.runs:
                level = exp(host + source.gauss(0, noise)) * (
                    1.0 if run.cell == cells[0] else other
                )
                steps = [
                    level * exp(source.gauss(0, 0.02))
                    for _ in range(run.confirming_steps or TRIAL_STEPS)
                ]
                session = session_of(
                    (hidden if run.cell == cells[0] else plain)(steps), host_id=job.job_id
                )
                results.append(result_of(run, suite, [session], job_name=f"job-{job.job_id}"))
        number += 1
    return judge(suite, cells, results)


def leads(verdict: Verdict) -> bool:
    """Whether the answer is the first cell."""
    is_answer = verdict.finding.value in ("recommended", "within_tolerance", "only_one")
    return is_answer and verdict.recommended == verdict.rows[0].cell_id


@pytest.mark.parametrize(
    ("hidden", "other", "minutes"), [(throttled, 1.05, 20), (rarely_long_checkpoint, 1.03, 60)]
)
def test_long_runs_of_the_leaders_correct_the_trials(
    hidden: Hidden, other: float, minutes: float
) -> None:
    seeds = range(SUITES * TIMES)
    alone = [race(hidden, other=other, confirm=None, seed=seed) for seed in seeds]
    confirmed = [
        race(hidden, other=other, confirm=Confirm(minutes=minutes), seed=seed) for seed in seeds
    ]
    assert sum(map(leads, alone)) >= 0.9 * len(alone)
    wrong = share_of(map(leads, confirmed))
    assert wrong.share <= 0.03 + wrong.error(0.03)


def test_agreeing_long_runs_keep_the_answer() -> None:
    played = [
        race(plain, other=1.05, confirm=Confirm(minutes=20), seed=seed)
        for seed in range(SUITES * TIMES)
    ]
    kept = share_of(map(leads, played))
    assert kept.share >= 0.95 - kept.error(0.95)
