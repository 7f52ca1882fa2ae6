"""Plays suites whose runs share jobs: the planner's jobs and orders, drawn runs, and the lab's
verdict on them.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from statistics import fmean

from tests.simulations.logged_runs import (
    DOWNLOADING_SECONDS,
    IMPORT_SECONDS,
    UPLOADING_SECONDS,
    result_of,
    session_of,
)
from tests.simulations.processes import Process
from tests.simulations.suites.figures import Figures, summarise
from tests.simulations.suites.logs import FIXED_SECONDS, STEPS, on_speed, pooled_result
from tests.simulations.suites.play import Played, index_of
from tests.simulations.suites.simulated_suite import CHECKPOINT_STEPS, FULL_STEPS, make_suite
from tests.unit.run_samples import known
from traindyno.core.jobs.attempt import RunShare
from traindyno.core.jobs.job import Job
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.planning.history import CellHistory
from traindyno.core.planning.jobs import FILLED_SHARE, share_jobs
from traindyno.core.suite.cells import Cell, make_cell
from traindyno.core.suite.choices import Jobs
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Measurement, Run, Suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.verdict import Verdict

SEED = "shared jobs 20261123"
TYPES = ("ml.p4d.24xlarge", "ml.p5.48xlarge")
# Of a run's mean step beside what its job and its place do; no constant of the lab was chosen on
# it.
OWN = 0.005
PlaceEffect = Callable[[int, int], float]
JobDraw = Callable[[random.Random], float]


def no_effect(_: int, __: int) -> float:
    return 0.0


def average_host(source: random.Random) -> float:
    return source.gauss(0, 0.01)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """A suite in shared jobs; ``levels`` are the logarithms of the cells' true steps.

    ``host`` draws the factor of a job's host. ``effect`` is the logarithm of what a run suffers in
    its place (from 0), of so many. ``first`` has the step times of the first run of a job.
    ``throw_away``: a few steps before the first run take its place. ``part``: the planner knows
    that no more runs fit into one job. ``groups`` is the number of instance types, on which the
    cells are divided.
    """

    levels: tuple[float, ...]
    trials: int
    host: JobDraw = average_host
    effect: PlaceEffect = no_effect
    first: Process | None = None
    throw_away: bool = False
    part: int | None = None
    groups: int = 1
    own: tuple[float, ...] | None = None
    are_hosts_known: bool = True

    def suite(self) -> Suite:
        measurement = Measurement(
            trials=self.trials, checkpoint_every_steps=CHECKPOINT_STEPS, jobs=Jobs.SHARED
        )
        workers = tuple(range(len(self.levels) // self.groups))
        matrix = {"instance": TYPES[: self.groups], "loader_workers": workers}
        return make_suite(trials=self.trials, matrix=matrix, training={}, measurement=measurement)


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedFigures:
    """The figures of a suite in shared jobs.

    ``ratios`` is how often the 95 % interval of a ratio to the recommended cell holds the truth;
    None without any.
    """

    figures: Figures
    ratios: float | None


def measure_shared(sharing: Sharing, name: str, suites: int) -> SharedFigures:
    played = [play_shared(sharing, name, number) for number in range(suites)]
    held = [held_ratio for one in played for held_ratio in _held_ratios(one)]
    return SharedFigures(figures=summarise(played), ratios=fmean(held) if held else None)


def play_shared(sharing: Sharing, name: str, number: int) -> Played:
    suite = sharing.suite()
    cells = [
        make_cell(suite, {"instance": instance, "loader_workers": workers})
        for instance in suite.matrix["instance"]
        for workers in suite.matrix["loader_workers"]
    ]
    play = _Play(
        sharing=sharing, suite=suite, cells=cells, source=random.Random(f"{SEED} {name} {number}")
    )
    results = [result for job in play.jobs(f"{name} {number}") for result in play.results(job)]
    verdict = judge(suite, cells, results)
    return Played(
        verdict=verdict,
        best=index_of(cells, verdict.recommended),
        truth=tuple(FIXED_SECONDS + FULL_STEPS * exp(level) for level in sharing.levels),
        later=None,
        values=tuple(tuple(play.seen[cell]) for cell in range(len(cells))),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Play:
    """A suite that is played; ``seen`` has the logarithms of each cell's trials without the effects
    of their places.
    """

    sharing: Sharing
    suite: Suite
    cells: Sequence[Cell]
    source: random.Random
    seen: dict[int, list[float]] = field(default_factory=dict)

    def jobs(self, execution_id: str) -> Sequence[Job]:
        runs = trial_runs(execution_id, self.cells, range(1, self.sharing.trials + 1))
        if self.sharing.part is None:
            return share_jobs(runs, self.suite)
        seconds = FILLED_SHARE * self.suite.limits.max_job_seconds / self.sharing.part
        history = {
            cell.cell_id: CellHistory(
                cell_id=cell.cell_id,
                run_count=1,
                billable_seconds=seconds,
                seconds=seconds,
                is_simulated=False,
            )
            for cell in self.cells
        }
        return share_jobs(runs, self.suite, history)

    def results(self, job: Job) -> Iterator[RunResult]:
        """Results of one job, whose runs are on the same host."""
        of_job = self.sharing.host(self.source)
        hosts = (f"host {job.job_id}",) if self.sharing.are_hosts_known else ()
        for place, run in enumerate(job.runs):
            cell = known(index_of(self.cells, run.cell.cell_id))
            own = self.sharing.own[cell] if self.sharing.own else OWN
            value = self.sharing.levels[cell] + of_job + self.source.gauss(0, own)
            self.seen.setdefault(cell, []).append(value)
            suffered = self.sharing.effect(place + self.sharing.throw_away, len(job.runs))
            result = self._result(run, exp(value + suffered), hosts, is_first=place == 0)
            yield _shared(result, job, place) if job.is_shared else result

    def _result(
        self, run: Run, factor: float, hosts: tuple[str, ...], *, is_first: bool
    ) -> RunResult:
        process = self.sharing.first
        if process is None or not is_first or self.sharing.throw_away:
            return pooled_result(self.source, run, self.suite, factor, hosts)
        session = session_of(
            on_speed(process(self.source, STEPS), factor), host_id=hosts[0] if hosts else None
        )
        return result_of(run, self.suite, [session])


def _shared(result: RunResult, job: Job, place: int) -> RunResult:
    """The same run, of a job with others: its own part of the phases is that of a job of its
    own.
    """
    (attempt,) = result.attempts
    share = RunShare(
        own_seconds=attempt.phase_seconds["training"] - IMPORT_SECONDS,
        start_seconds=DOWNLOADING_SECONDS + IMPORT_SECONDS,
        end_seconds=UPLOADING_SECONDS,
        place=place + 1,
        runs=len(job.runs),
    )
    shared = replace(
        attempt,
        job_name=f"lab-{job.job_id}-a1",
        training_seconds=attempt.phase_seconds["training"],
        share=share,
    )
    return replace(result, attempts=(shared,))


def _held_ratios(played: Played) -> list[bool]:
    verdict: Verdict = played.verdict
    if played.best is None:
        return []
    cells = {row.cell_id: index for index, row in enumerate(verdict.rows)}
    held = []
    for rival in verdict.rivals:
        interval = rival.comparison.interval
        if interval is not None:
            truth = played.truth[played.best] / played.truth[cells[rival.cell_id]]
            held.append(interval.low <= truth <= interval.high)
    return held
