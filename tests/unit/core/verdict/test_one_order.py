"""Headline, table, order and alternatives never contradict each other, whatever the runs were."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import exp
from random import Random

import pytest

from tests.unit.run_samples import (
    PRICE,
    completed_result,
    completed_results,
    failed_result,
    known,
    make_suite,
)
from traindyno.core.jobs.attempt import RunShare
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.suite.choices import GoalKind, Jobs, Search
from traindyno.core.suite.goal import Goal, Pricing, SpotTerms
from traindyno.core.suite.suite import Measurement, Run, Suite
from traindyno.core.verdict.cell_figures import find_trade_offs
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round
from traindyno.core.verdict.verdict import Verdict
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.figures.selection import Relation
from traindyno.slices.pricing.lab import price_options

NEAR = 1e-6
NONE_NEAR = "was more than 5 %"
ONE_TYPE = ("ml.p4d.24xlarge",)
TWO_TYPES = ("ml.p4d.24xlarge", "ml.p5.48xlarge")


def drawn_suite(source: Random, search: Search) -> Suite:
    return make_suite(
        goal=Goal(kind=source.choice((GoalKind.FASTEST, GoalKind.CHEAPEST))),
        examples=1_000_000,
        training={},
        matrix={
            "instance": source.choice((ONE_TYPE, TWO_TYPES)),
            "batch_size_per_device": tuple(2**power for power in range(source.randint(1, 5))),
        },
        baseline={},
        search=search,
        measurement=Measurement(
            trials=source.choice((1, 2, 3, 4, 5, 9))
            if search is Search.RACE
            else source.choice((1, 2, 3)),
            jobs=source.choice((Jobs.SHARED, Jobs.SHARED, Jobs.SEPARATE)),
        ),
    )


class Lab:
    """Cells at levels that may be equal; noise, hosts of a job, a cold first run, lost and failing
    runs are drawn.
    """

    def __init__(self, source: Random, suite: Suite) -> None:
        self.source = source
        self.suite = suite
        self.cells = suite.cells
        self.level = {
            cell.cell_id: source.choice((1.0, 1.0, 1.02, 1.07, 1.1, 1.4)) for cell in self.cells
        }
        self.noise, self.hosts, self.cold, self.lost = (
            source.choice(choices)
            for choices in ((0.0, 0.005, 0.03), (0.0, 0.02, 0.1), (0.0, 0.1), (0.0, 0.15))
        )

    def play(self) -> Verdict:
        results = list[RunResult]()
        number = 1
        while runs := plan_round(
            self.suite, self.cells, execution_id="e", round_number=number, results=results
        ):
            for job in share_jobs(runs, self.suite):
                results += self.carry(job)
            number += 1
        return judge(self.suite, self.cells, results)

    def carry(self, job: Job) -> Iterator[RunResult]:
        hosts = self.source.gauss(0, self.hosts)
        best = float("inf")
        for place, run in enumerate(job.runs, start=1):
            cold = self.cold if place == 1 else 0.0
            seconds = self.level[run.cell.cell_id] * exp(
                hosts + cold + self.source.gauss(0, self.noise)
            )
            outcome = self.outcome(seconds / best, run)
            best = min(best, seconds) if outcome is None else best
            yield self.result(run, job, place, seconds, outcome)

    def outcome(self, ratio: float, run: Run) -> Outcome | None:
        if self.suite.search.is_race and run.job_id and ratio > 1.2:
            return Outcome.OUTPACED
        if self.source.random() < self.lost:
            return self.source.choice(
                (Outcome.INTERNAL_ERROR, Outcome.INTERNAL_ERROR, Outcome.OUT_OF_MEMORY)
            )
        return None

    def result(
        self, run: Run, job: Job, place: int, seconds: float, outcome: Outcome | None
    ) -> RunResult:
        result = (
            failed_result(run.cell, run.trial, outcome)
            if outcome
            else completed_result(
                run.cell, run.trial, step_seconds=seconds, suite=self.suite, price=PRICE
            )
        )
        training = result.attempts[0].phase_seconds["training"]
        share = RunShare(
            own_seconds=training,
            start_seconds=0.0,
            end_seconds=0.0,
            place=place,
            runs=len(job.runs),
        )
        attempt = replace(
            result.attempts[0],
            job_name=job.job_id,
            share=share if job.is_shared else None,
            training_seconds=training if job.is_shared else None,
        )
        return replace(result, run=replace(run, execution_id="e"), attempts=(attempt,))


def contradictions(verdict: Verdict) -> Iterator[str]:
    if verdict.recommended is None:
        return
    rows = verdict.ranked_rows
    known = [row.estimate(verdict.metric) for row in rows if row.cell_id not in verdict.refused]
    figures = [estimate.mean for estimate in known if estimate]
    text = describe_verdict(verdict)
    if rows[0].cell_id != verdict.recommended:
        yield "the first row is another cell"
    if rows[0].label not in text.headline:
        yield "the headline names another cell"
    if any(other < one * (1 - NEAR) for one, other in pairwise(figures)):
        yield "the table is in another order"
    for rival in verdict.rivals:
        shown = shown_row(verdict, rival.cell_id).estimate(verdict.metric)
        if shown is None or abs(figures[0] / shown.mean - rival.comparison.ratio) > NEAR:
            yield "a rival's figure is not its ratio"
    compared = [
        row.cell_id for row in rows if row.cell_id in {rival.cell_id for rival in verdict.rivals}
    ]
    if (
        verdict.runner_up
        and abs(_mean(verdict, compared[0]) - _mean(verdict, verdict.runner_up.cell_id)) > NEAR
    ):
        yield "the next best is not the second in the table"
    if NONE_NEAR in text.headline and any(
        figure < figures[0] * 1.05 * (1 - NEAR) for figure in figures[1:]
    ):
        yield "a cell is within 5 % of the one that no other was near"
    for _, seconds, usd in find_trade_offs(verdict):
        own = seconds if verdict.metric.is_time else usd
        if own.mean < figures[0] * (1 - NEAR):
            yield "an alternative is better by the goal's own quantity"


def shown_row(verdict: Verdict, cell_id: str) -> CellRow:
    return next(row for row in verdict.ranked_rows if row.cell_id == cell_id)


def _mean(verdict: Verdict, cell_id: str) -> float:
    estimate = known(shown_row(verdict, cell_id).estimate(verdict.metric))
    return estimate.mean


@pytest.mark.parametrize("search", [Search.RACE, Search.GRID])
def test_figures_of_a_verdict_are_in_one_order(search: Search) -> None:
    source = Random(2026)
    for _ in range(20):
        suite = drawn_suite(source, search)
        contradicting = list(contradictions(Lab(source, suite).play()))
        assert not contradicting, suite


def with_a_slow_round(suite: Suite, *levels: float) -> list[RunResult]:
    """Four trials of each cell, the last one half as slow again; that of the second cell is
    lost.
    """
    rounds = [
        [
            level * slow * (1 + 0.001 * ((number + trial) % 3))
            for trial, slow in enumerate((1.0, 1.0, 1.0, 1.5), start=1)
        ]
        for number, level in enumerate(levels)
    ]
    return completed_results(suite.cells, rounds[0], rounds[1][:3], *rounds[2:], suite=suite)


def test_a_cell_without_a_trial_in_a_slow_round_is_behind_its_beaters() -> None:
    """By the means of their own trials the second cell would be the fastest of the three."""
    suite = make_suite(
        goal=Goal(kind=GoalKind.FASTEST),
        examples=1_000_000,
        training={"instance": ONE_TYPE[0]},
        matrix={"batch_size_per_device": (1, 2, 4)},
        measurement=Measurement(trials=4, jobs=Jobs.SEPARATE),
    )
    cells = suite.cells
    verdict = judge(suite, cells, with_a_slow_round(suite, 1.0, 1.05, 1.02))
    first, second, third = (cell.cell_id for cell in cells)
    assert [row.cell_id for row in verdict.ranked_rows] == [first, third, second]
    assert [rival.cell_id for rival in verdict.rivals] == [third, second]
    assert not list(contradictions(verdict))


def test_the_same_cell_has_the_same_figures_throughout_a_verdict() -> None:
    suite = make_suite(
        goal=Goal(kind=GoalKind.CHEAPEST),
        examples=1_000_000,
        training={},
        matrix={"instance": TWO_TYPES},
        baseline={},
        measurement=Measurement(trials=4, jobs=Jobs.SEPARATE),
    )
    cells = suite.cells
    results = with_a_slow_round(suite, 1.0, 1.05)
    verdict = judge(suite, cells, results)
    first, second = verdict.ranked_rows
    assert first.cell_id == verdict.recommended
    assert (verdict.rivals[0].relation, verdict.row(second.cell_id).trials) == (Relation.BEATEN, 3)
    for row in (first, second):
        assert row.samples_per_second and row.steps_per_second and row.billable_seconds and row.usd
        batch = row.samples_per_second.mean / row.steps_per_second.mean
        assert batch == pytest.approx(cells[0].settings.batch_size * 8, rel=0.001)
        billed = row.billable_seconds.mean / 3600 * float(PRICE.usd_per_instance_hour or 0)
        assert billed == pytest.approx(row.usd.mean, rel=0.001)
    reserved = replace(suite, pricing=Pricing(spot={TWO_TYPES[0]: SpotTerms(discount=0.5)}))
    record = ExecutionRecord(execution_id="e", suite=reserved, cells=cells, results=tuple(results))
    paid, _ = price_options(record)
    assert paid.basis == "prices of the runs"
    assert paid.usd == {row.cell_id: row.usd.mean for row in (first, second) if row.usd}
