"""Plays a whole suite on a response surface: the lab's own rounds and verdict, with results drawn from the surface."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random

from tests.simulations.response_surface import Surface, SurfaceCell
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.step_log.line import environment_line, step_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.choices import GoalKind, Search
from traindyno.core.suite.runs import make_runs
from traindyno.core.suite.suite import Cell, Run, Suite
from traindyno.core.verdict.rounds import plan_round
from traindyno.core.verdict.verdict import Verdict, judge

STEPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """``share`` of the grid's billable seconds that was spent; ``regret`` of the recommended cell, as a share."""

    surface: str
    share: float
    regret: float
    rounds: int
    runs: int
    verdict: Verdict


def play(surface: Surface, search: Search, seed: int) -> Played:
    """Round by round until the lab plans no more; the same seed gives the same trials."""
    suite, results, number = surface.suite(search), list[RunResult](), 1
    while True:
        runs = plan_round(
            suite, surface.suite_cells, execution_id=f"execution-{seed}", round_number=number, results=results
        )
        if not runs:
            return _played(surface, suite, results, rounds=number - 1)
        results += [draw_result(surface, suite, run, seed) for run in runs]
        number += 1


def play_random(surface: Surface, seed: int, *, share: float) -> Played:
    """Draws as many cells as ``share`` of the grid's billable seconds pays with the default trials."""
    suite, source = surface.suite(Search.GRID), Random(f"random search {surface.name} {seed}")
    budget, chosen = share * surface.grid_seconds(), list[Cell]()
    for cell in source.sample(surface.suite_cells, len(surface.suite_cells)):
        cost = surface.trial_seconds(cell.cell_id) * suite.measurement.trials
        if chosen and cost > budget:
            break
        budget -= cost
        chosen.append(cell)
    trials = range(1, suite.measurement.trials + 1)
    runs = make_runs(f"execution-{seed}", [(cell, trial) for trial in trials for cell in chosen])
    return _played(surface, suite, [draw_result(surface, suite, run, seed) for run in runs], rounds=1)


def draw_result(surface: Surface, suite: Suite, run: Run, seed: int) -> RunResult:
    """The trial of a cell is the same in every search with this seed."""
    cell = surface.by_id[run.cell.cell_id]
    template = result_template()
    billable_seconds = cell.billable_seconds
    attempt = replace(
        template.attempts[0],
        billable_seconds=billable_seconds,
        outcome=cell.outcome,
        phase_seconds={"training": billable_seconds},
    )
    result = replace(
        template,
        run=run,
        attempts=(attempt,),
        billable_seconds=billable_seconds,
        price=PaidPrice(usd_per_instance_hour=surface.price(run.cell.cell_id)),
    )
    if cell.seconds is None:
        return replace(result, outcome=cell.outcome, measured=None)
    seconds = cell.draw_seconds(Random(f"{surface.name} {seed} {run.run_id}"))
    return replace(result, measured=at_rate(template, suite.workload.examples / seconds, billable_seconds))


def at_rate(template: RunResult, samples_per_second: float, steady_seconds: float) -> MeasuredRun:
    """Steady for the whole trial, so that the projection is the work at this rate."""
    measured = template.measured
    assert measured is not None
    assert measured.throughput is not None
    return replace(
        measured,
        throughput=replace(measured.throughput, samples_per_second=samples_per_second),
        samples_before_steady=0,
        steady_seconds=steady_seconds,
    )


def _played(surface: Surface, suite: Suite, results: Sequence[RunResult], *, rounds: int) -> Played:
    verdict = judge(suite, surface.suite_cells, results)
    spent = sum(surface.trial_seconds(result.run.cell.cell_id) for result in results)
    return Played(
        surface=surface.name,
        share=spent / surface.grid_seconds(suite.measurement.trials),
        regret=surface.regret(verdict.recommended) if verdict.recommended else float("inf"),
        rounds=rounds,
        runs=len(results),
        verdict=verdict,
    )


@cache
def result_template() -> RunResult:
    """A run that completed, through the lab's own functions."""
    surface = Surface(
        name="template",
        origin="",
        source="",
        goal=GoalKind.FASTEST,
        training={"instance": "local.cpu"},
        cells=(SurfaceCell(settings={"loader_workers": 0}, seconds=1.0, billable_seconds=1.0),),
    )
    suite, cell = surface.suite(Search.GRID), surface.suite_cells[0]
    lines = [
        environment_line(0.0, 0, 1, "algo-1", {}),
        *(step_line(step=step, begin=step, end=step + 1, wait_seconds=0, samples=1, loss=1.0) for step in range(STEPS)),
    ]
    attempt = Attempt(
        number=1,
        job_name="job",
        outcome=Outcome.COMPLETED,
        submitted_at=0.0,
        started_at=0.0,
        ended_at=float(STEPS),
        billable_seconds=float(STEPS),
        phase_seconds={"training": float(STEPS)},
    )
    return build_run_result(
        Run(run_id="", execution_id="", trial=1, cell=cell),
        suite=suite,
        outcome=Outcome.COMPLETED,
        attempts=[attempt],
        step_log=read_step_log({"job/rank-00000.0.jsonl": map(json.dumps, lines)}),
        price=PaidPrice(usd_per_instance_hour=None),
    )
