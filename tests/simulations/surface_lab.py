"""What a suite that is played on a response surface ends with, and a run's result at a given rate."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from tests.simulations.response_surface import Surface, SurfaceCell
from tests.unit.run_samples import known
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.measured_run import MeasuredRun
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.step_log.line import environment_line, step_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.choices import GoalKind, Search
from traindyno.core.suite.suite import Run
from traindyno.core.verdict.verdict import Verdict

STEPS = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """``share`` of the grid's billable seconds that was spent, and the ``bill`` that it adds up from; ``regret`` of the
    recommended cell, as a share.
    """

    surface: str
    share: float
    regret: float
    rounds: int
    runs: int
    verdict: Verdict
    bill: Mapping[str, float] = field(default_factory=dict)


def at_rate(template: RunResult, samples_per_second: float, steady_seconds: float) -> MeasuredRun:
    """Steady for the whole trial, so that the projection is the work at this rate."""
    measured = known(template.measured)
    return replace(
        measured,
        throughput=replace(known(measured.throughput), samples_per_second=samples_per_second),
        samples_before_steady=0,
        steady_seconds=steady_seconds,
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
