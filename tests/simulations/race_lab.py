"""Plays a race on a response surface: the lab's own rounds, jobs, rule for outpaced runs and
verdict.

Assumed are the times of a job's and of a run's start, the noise of a run and of a step, how far
hosts differ, and that the first run of a job is slow. What a run of a shared job is billed is added
up from them.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from random import Random
from statistics import fmean
from typing import Any, Protocol

from tests.simulations.response_surface import Surface, SurfaceCell
from tests.simulations.surface_lab import STEPS, Played, at_rate, result_template
from tests.unit.run_samples import known
from traindyno.core.jobs.attempt import RunShare
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import OutpacedBound
from traindyno.core.measurement.run_result import PaidPrice, RunResult
from traindyno.core.measurement.stop_rule import steps_that_last
from traindyno.core.planning.jobs import runs_again, share_jobs
from traindyno.core.suite.choices import Jobs, Search
from traindyno.core.suite.runs import round_of
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import SECONDS_OF_A_RACE, STEPS_OF_A_RACE
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round
from traindyno.core.verdict.open_text import none_near
from traindyno.core.verdict.verdict import Finding
from traindyno.figures.in_job.outpaced import LEAST_STEPS, WARM_UP_STEPS, Pace, early_end, pace_of
from traindyno.figures.in_job.race import contenders_in_job
from traindyno.figures.in_job.run_scatter import NONE_NEARER, run_scatter

TRIALS = 9
GRID_TRIALS = 5
# A run's steps on the surfaces of this project, and at most on those of published tables.
OWN_STEPS = 200
MOST_STEPS = 100
LONGEST_SECONDS = 600.0
LEAST_RUN_STEPS = STEPS_OF_A_RACE
FIRST_LOOK = WARM_UP_STEPS + LEAST_STEPS
# A run that fails does so in its first steps.
FAILING_SECONDS = 5.0
BILL = (JOB_STARTS, RUN_STARTS, THROWN_AWAY, WHOLE_STEPS, STEPS_OF_ENDED) = (
    "starts of jobs",
    "starts of runs",
    "throw-away runs",
    "steps",
    "steps of runs that ended early",
)


class Recording(Protocol):
    def from_one_on(self, source: Random) -> Iterator[Sequence[float]]:
        """The steps of its runs, each as a share of the true ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Standard deviations of the logarithm: of a run's level, of a step, and of the hosts of a job.

    ``cold``: by how much the first run of a job is slower, if the job does not begin with some
    steps that don't count, as a race's does. ``slow_hosts``: the share of jobs that are slower, and
    the logarithm of by how much. ``more_noise`` draws what is added to the logarithm of a run's
    level. ``recording``: its runs, in their order, in place of all noise.
    """

    noise: float = 0.01
    step_noise: float = 0.02
    hosts: float = 0.01
    slow_hosts: tuple[float, float] = (0.0, 0.0)
    cold: float = 0.1
    job_start: float = 300.0
    run_start: float = 45.0
    more_noise: Callable[[SurfaceCell, Random], float] = lambda cell, source: 0.0
    recording: Recording | None = None


def race(
    surface: Surface,
    seed: int,
    conditions: Conditions,
    *,
    trials: int = TRIALS,
    jobs: Jobs = Jobs.SHARED,
) -> Played:
    """Plays a race; its share is of a grid of five trials with a job each."""
    suite = surface.suite(Search.RACE, trials=trials)
    return _play(
        surface, replace(suite, measurement=replace(suite.measurement, jobs=jobs)), seed, conditions
    )


def measure_grid(surface: Surface, seed: int, conditions: Conditions) -> Played:
    suite = surface.suite(Search.GRID, trials=GRID_TRIALS)
    separate = replace(suite.measurement, jobs=Jobs.SEPARATE)
    return _play(surface, replace(suite, measurement=separate), seed, conditions)


def _play(surface: Surface, suite: Suite, seed: int, conditions: Conditions) -> Played:
    """Round by round until the lab plans no more."""
    results = list[RunResult]()
    bill = dict.fromkeys(BILL, 0.0)
    number = 1
    recorded = None
    if conditions.recording is not None:
        recorded = conditions.recording.from_one_on(Random(f"{surface.name} {seed}"))
    while True:
        runs = plan_round(
            suite,
            surface.suite_cells,
            execution_id=f"execution-{seed}",
            round_number=number,
            results=results,
        )
        if not runs:
            break
        for job in share_jobs(runs, suite):
            source = Random(f"{surface.name} {seed} {job.job_id}")
            carried = _Carried(
                surface=surface,
                suite=suite,
                conditions=conditions,
                job=job,
                source=source,
                recorded=recorded,
            )
            results += carried.results()
            bill = {part: bill[part] + carried.bill[part] * job.instance_count for part in BILL}
        number += 1
    verdict = judge(suite, surface.suite_cells, results)
    whole = grid_seconds(surface, conditions)
    return Played(
        surface=surface.name,
        share=sum(bill.values()) / whole,
        regret=surface.regret(verdict.recommended) if verdict.recommended else float("inf"),
        rounds=number - 1,
        runs=len(results),
        verdict=verdict,
        bill={part: seconds / whole for part, seconds in bill.items()},
    )


def grid_seconds(surface: Surface, conditions: Conditions, trials: int = GRID_TRIALS) -> float:
    """Billed seconds of all instances, each trial in a job of its own."""
    return trials * sum(
        (conditions.job_start + step_seconds(surface, cell) * run_steps(surface, cell))
        * surface.instances(cell)
        for cell in surface.cells
    )


def shared_grid_seconds(
    surface: Surface, conditions: Conditions, trials: int = GRID_TRIALS
) -> float:
    """As ``grid_seconds``, with one job of each trial for the cells on the same instances."""
    groups = {
        (str({**surface.training, **cell.settings}["instance"]), surface.instances(cell))
        for cell in surface.cells
    }
    runs = sum(
        (conditions.run_start + step_seconds(surface, cell) * run_steps(surface, cell))
        * surface.instances(cell)
        for cell in surface.cells
    )
    return trials * (conditions.job_start * sum(count for _, count in groups) + runs)


def run_steps(surface: Surface, cell: SurfaceCell) -> int:
    if cell.seconds is None:
        return 1
    if not surface.is_of_table:
        return OWN_STEPS
    return round(
        max(LEAST_RUN_STEPS, min(MOST_STEPS, LONGEST_SECONDS / step_seconds(surface, cell)))
    )


def step_seconds(surface: Surface, cell: SurfaceCell) -> float:
    if cell.seconds is None:
        return FAILING_SECONDS
    if not surface.is_of_table:
        batch = {**surface.training, **cell.settings}
        samples = batch.get("batch_size_per_device", 16) * batch.get(
            "gradient_accumulation_steps", 1
        )
        return float(cell.seconds * samples * 8 * surface.instances(cell) / 1_000_000)
    return cell.seconds / surface.table_steps


class _Carried:
    """One job, run after run."""

    def __init__(
        self,
        *,
        surface: Surface,
        suite: Suite,
        conditions: Conditions,
        job: Job,
        source: Random,
        recorded: Iterator[Sequence[float]] | None = None,
    ) -> None:
        self.recorded = recorded
        self.scatter = run_scatter(job.runs[0].cell.settings.instance)
        self.surface = surface
        self.suite = suite
        self.conditions = conditions
        self.job = job
        self.source = source
        self.bill = {**dict.fromkeys(BILL, 0.0), JOB_STARTS: conditions.job_start}
        share, slower = conditions.slow_hosts
        self.level = exp(
            source.gauss(0, conditions.hosts) + slower * (source.random() < share if share else 0)
        )

    def results(self) -> Iterator[RunResult]:
        paces = dict[str, Pace]()
        of_cells = dict[str, list[Pace]]()
        for place, run in enumerate(self.job.runs):
            cell = self.surface.by_id[run.cell.cell_id]
            if place == 0 and self.job.is_shared:
                self.bill[THROWN_AWAY] += self.conditions.run_start + FIRST_LOOK * step_seconds(
                    self.surface, cell
                )
            if self.job.is_shared:
                self.bill[RUN_STARTS] += self.conditions.run_start
            result, pace = self._run(run, cell, paces if round_of(run) == "1" else {})
            paces |= {run.run_id: pace} if pace else {}
            yield self._in_job(result, place + 1)
            if pace:
                of_cells[run.cell.cell_id] = [pace]
        contenders = list[str]()
        for number, run in enumerate(runs_again(self.job, self.suite)):
            done, place = divmod(number, len(self.job.runs))
            if place == 0:
                contenders = contenders_in_job(of_cells, self.scatter, 1 + done)
            if run.cell.cell_id in contenders:
                self.bill[RUN_STARTS] += self.conditions.run_start
                result, pace = self._run(run, self.surface.by_id[run.cell.cell_id], {})
                of_cells[run.cell.cell_id] += [pace] if pace else []
                yield self._in_job(result, 0)

    def _run(
        self, run: Run, cell: SurfaceCell, earlier: Mapping[str, Pace]
    ) -> tuple[RunResult, Pace | None]:
        if cell.seconds is None:
            self.bill[STEPS_OF_ENDED] += FAILING_SECONDS
            return self._result(run, outcome=cell.outcome), None
        times = self._step_seconds(cell)
        # Steps of unlike batches are compared by the work in them.
        work = step_seconds(self.surface, cell) / cell.seconds
        end = early_end(times, work, earlier, self.suite.workload.examples, self.scatter)
        if end is not None:
            self.bill[STEPS_OF_ENDED] += sum(times[: end.steps]) + end.overdue_seconds
            return self._ended(self._result(run, outcome=Outcome.OUTPACED), end.bound), None
        self.bill[WHOLE_STEPS] += sum(times)
        seen = fmean(times[WARM_UP_STEPS:]) / step_seconds(self.surface, cell)
        return self._result(run, seconds=cell.seconds * seen), pace_of(times, work)

    def _step_seconds(self, cell: SurfaceCell) -> list[float]:
        step = step_seconds(self.surface, cell)
        if self.recorded is not None:
            return [step * share for share in next(self.recorded)]
        deviation = self.source.gauss(0, self.conditions.noise) + self.conditions.more_noise(
            cell, self.source
        )
        level = self.level * exp(deviation)

        def step_times(count: int) -> list[float]:
            noise = self.conditions.step_noise
            return [step * level * exp(self.source.gauss(0, noise)) for _ in range(count)]

        if not self.suite.search.is_race:
            return step_times(run_steps(self.surface, cell))
        # as training/run/train.py
        times = step_times(STEPS_OF_A_RACE)
        own = steps_that_last(SECONDS_OF_A_RACE, times[WARM_UP_STEPS:FIRST_LOOK])
        return times + step_times(max(0, own - STEPS_OF_A_RACE))

    def _ended(self, result: RunResult, bound: Mapping[str, Any]) -> RunResult:
        """As the product reads it from the job's journal."""
        (attempt,) = result.attempts
        return replace(result, attempts=(replace(attempt, bound=OutpacedBound(**bound)),))

    def _in_job(self, result: RunResult, place: int) -> RunResult:
        share = None
        if self.job.is_shared:
            share = RunShare(
                own_seconds=STEPS,
                start_seconds=0.0,
                end_seconds=0.0,
                place=place,
                runs=len(self.job.runs),
            )
        attempt = replace(
            result.attempts[0], job_name=self.job.job_id, share=share, training_seconds=STEPS
        )
        return replace(result, attempts=(attempt,))

    def _result(
        self, run: Run, *, outcome: Outcome = Outcome.COMPLETED, seconds: float | None = None
    ) -> RunResult:
        template = result_template()
        attempt = replace(template.attempts[0], outcome=outcome, billable_seconds=STEPS)
        price = PaidPrice(usd_per_instance_hour=self.surface.price(run.cell.cell_id))
        result = replace(template, run=run, outcome=outcome, attempts=(attempt,), price=price)
        draw = "this machine" if self.scatter.has_stalls else self.job.job_id
        hosts = tuple(f"{draw} {number}" for number in range(self.job.instance_count))
        result = replace(result, environment=replace(known(template.environment), host_ids=hosts))
        if seconds is None:
            return replace(result, measured=None)
        return replace(
            result, measured=at_rate(template, self.suite.workload.examples / seconds, STEPS)
        )


def claims_too_much(surface: Surface, played: Played) -> bool:
    """Whether a cell was said to beat one that is better, or to be the best of equals."""
    verdict = played.verdict
    if verdict.finding.value != "recommended" or verdict.recommended is None:
        return False
    own = surface.value(verdict.recommended) or float("inf")
    values: Sequence[float] = [
        value for rival in verdict.rivals if (value := surface.value(rival.cell_id))
    ]
    return any(value <= own for value in values)


def says_none_near_wrongly(surface: Surface, played: Played) -> bool:
    """Whether "every other cell was more than 5 % slower" was said, and one is not."""
    verdict = played.verdict
    if verdict.finding is not Finding.ONLY_ONE or "every other cell" not in (
        none_near(verdict) or ""
    ):
        return False
    own = played_value(surface, verdict.recommended)
    others = {*surface.by_id} - {verdict.recommended}
    return any(played_value(surface, other) <= own * (1 + NONE_NEARER) for other in others)


def played_value(surface: Surface, cell_id: str | None) -> float:
    return (surface.value(cell_id) if cell_id else None) or float("inf")
