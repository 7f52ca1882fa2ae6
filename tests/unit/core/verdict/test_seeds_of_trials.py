"""What trials show about a quality: with a seed each, how cells compare; with one seed, nothing
beyond that seed.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import cache

import pytest

from tests.sentences import Snapshot
from tests.unit.core.verdict.test_time_to_quality import FASTEST, evaluated, suite_of
from tests.unit.run_samples import completed_results, make_suite, remeasured
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_row import CellQuality
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round
from traindyno.core.verdict.verdict import Finding, Verdict
from traindyno.core.verdict.verdict_text import describe_verdict

CV_OF_TRIALS = 0.002
STRATEGIES = (Strategy.DDP, Strategy.FSDP, Strategy.ZERO1, Strategy.SINGLE)
# Seconds of a step in three trials of two cells.
LED = (1.001, 1.002, 1.003), (1.301, 1.303, 1.304)


def quality_suite(cells: int) -> Suite:
    return replace(suite_of(FASTEST), matrix={"strategy": STRATEGIES[:cells]})


@cache
def template_of(goal: Goal) -> RunResult:
    suite = suite_of(goal)
    return evaluated(suite.cells[0], 1, suite)


def later(result: RunResult, factor: float) -> RunResult:
    """The same run, whose evaluations came later by this factor."""
    assert result.measured is not None
    began = result.measured.job.began_at
    evaluations = tuple(
        replace(evaluation, time=began + (evaluation.time - began) * factor)
        for evaluation in result.measured.evaluations
    )
    return remeasured(result, evaluations=evaluations)


def judged_by_seeds(suite: Suite, source: random.Random, cv: float, *, shows_seed: bool) -> Verdict:
    """Equal cells.

    Each seed has its own time to the quality in each cell; without seeds, a cell has one time.
    """
    cells = suite.cells
    template = template_of(suite.goal)
    factors: dict[tuple[str, int | None], float] = {}
    results = []
    for run in plan_round(suite, cells, execution_id=str(source.random()), round_number=1):
        seed = run.seed if shows_seed else None
        factor = factors.setdefault((run.cell.cell_id, seed), source.lognormvariate(0, cv))
        trial = later(template, factor * source.lognormvariate(0, CV_OF_TRIALS))
        results.append(replace(trial, run=run, seed=seed))
    return judge(suite, cells, results)


def test_a_verdict_of_one_seed_says_so(snapshot: Snapshot) -> None:
    verdict = judged_by_seeds(quality_suite(2), random.Random(1), 0.1, shows_seed=False)
    text = describe_verdict(verdict)
    snapshot(text.headline, text.cautions[0])
    assert "Two trials of each cell" not in " ".join(text.changes)
    assert "measurement.seed_argument" in " ".join(text.changes)


def test_simulated_runs_are_no_draws_of_their_seeds(snapshot: Snapshot) -> None:
    """They do not train: what they say of a quality comes from their trace, whatever the seed of
    the trial.
    """
    suite = suite_of(FASTEST)
    fast, slow = suite.cells
    results = [
        evaluated(cell, trial, suite, step_seconds=pace * (1 + trial / 1000))
        for cell, pace in ((fast, 1.0), (slow, 1.5))
        for trial in (1, 2, 3)
    ]
    assert judge(suite, (fast, slow), results).finding is Finding.RECOMMENDED
    verdict = judge(suite, (fast, slow), [replace(result, is_simulated=True) for result in results])
    assert verdict.finding is Finding.ONE_SEED
    assert all(row.part(CellQuality).repeats_a_seed for row in verdict.rows)
    text = describe_verdict(verdict)
    snapshot(text.headline)
    snapshot(text.cautions)
    assert "measurement.seed_argument" not in " ".join(text.changes)


def test_time_and_cost_of_the_whole_work_do_not_depend_on_the_seed(snapshot: Snapshot) -> None:
    suite = make_suite(
        training={"instance": "ml.p4d.24xlarge"}, matrix={"strategy": STRATEGIES[:2]}
    )
    cells = suite.cells
    results = completed_results(cells, *LED, suite=suite)
    by_seed = judge(suite, cells, results)
    one_seed = judge(suite, cells, [replace(result, seed=None) for result in results])
    assert by_seed.finding is one_seed.finding is Finding.RECOMMENDED
    assert by_seed.rivals == one_seed.rivals
    assert [row.seconds for row in by_seed.rows] == [row.seconds for row in one_seed.rows]
    assert [parity.finding for parity in one_seed.likeness.parities] == [ParityFinding.ONE_SEED]
    said = [caution for caution in describe_verdict(one_seed).cautions if "seed" in caution]
    snapshot(said)
    assert not any(row.part(CellQuality).repeats_a_seed for row in by_seed.rows)


def test_a_cell_logging_no_loss_is_not_recommended_without_a_caution(snapshot: Snapshot) -> None:
    suite = make_suite(
        training={"instance": "ml.p4d.24xlarge"}, matrix={"strategy": STRATEGIES[:2]}
    )
    cells = suite.cells
    verdict = judge(suite, cells, completed_results(cells, *LED, suite=suite, loss=lambda _: None))
    assert verdict.finding is Finding.RECOMMENDED
    snapshot(describe_verdict(verdict).cautions)


@pytest.mark.parametrize(
    ("seeds", "finding"),
    [
        ((0, 1, 2), Finding.RECOMMENDED),
        ((0, 0, 0), Finding.ONE_SEED),
        ((0, 1, 1), Finding.ONE_SEED),
        ((0, 1, None), Finding.ONE_SEED),
    ],
)
def test_only_trials_each_with_their_own_seed_are_draws(
    seeds: Sequence[int | None], finding: Finding
) -> None:
    suite = suite_of(FASTEST)
    fast, slow = suite.cells
    results = [
        replace(evaluated(cell, trial, suite, step_seconds=pace * (1 + trial / 1000)), seed=seed)
        for cell, pace in ((fast, 1.0), (slow, 15.0))
        for trial, seed in enumerate(seeds, start=1)
    ]
    assert judge(suite, (fast, slow), results).finding is finding
