"""What verdict and report say of a step's wait for data, and the advice of more loader workers."""

import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.report.test_report import report_of
from tests.unit.run_samples import make_run, make_suite, result_from
from tests.unit.step_log_samples import file_name, log_lines
from tests.unit.verdict_samples import SECOND, make_estimate, make_rival, make_row, make_verdict
from traindyno.core.measurement.run_result import parse_run_result, run_result_document
from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.run.settings import Settings
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.verdict.slow_steps import (
    CellSteps,
    LoaderAdvice,
    advise_workers,
    describe_steps,
)
from traindyno.core.verdict.verdict import parse_verdict, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.features import FEATURES
from traindyno.report.html import render

# 8 vCPUs for one GPU.
G5 = Settings(instance="ml.g5.2xlarge", batch_size_per_device=8)
ABOUT_STEPS = ("waits for data", "By estimate")


@pytest.mark.parametrize(
    ("mean", "error", "is_named"),
    [(0.29, 0.02, True), (0.02, 0.005, False), (0.29, 0.20, False)],
)
def test_a_wait_is_named_if_it_is_large_and_no_noise(
    mean: float, error: float, is_named: bool
) -> None:
    """Means and standard errors, as shares of a step of one second."""
    parts = StepParts(
        step=PartSeconds(mean=1.0, error=0.01), waiting=PartSeconds(mean=mean, error=error)
    )
    told = [*describe_steps("A", CellSteps(step_parts=parts))]
    sentence = "29 % of a step of A waits for data, by its step log."
    assert told == ([sentence] if is_named else [])


def test_a_wait_that_differs_between_trials_is_named_with_the_least_and_the_most() -> None:
    suite = make_suite(matrix={"instance": (G5.instance,)})
    (cell,) = suite.cells
    trials = []
    for trial, wait_seconds in enumerate((0.006, 0.012, 0.030), 1):
        log = read_step_log(
            {file_name(): log_lines(step_seconds=[0.1] * 200, wait_seconds=wait_seconds)}
        )
        trials.append(result_from(log, run=make_run(cell, trial), suite=suite))
    (row,) = report_of(trials, suite).verdict.rows
    (sentence,) = describe_steps("A", row.part(CellSteps))
    assert sentence.startswith("16 % (6 to 30 % in its trials) of a step of A waits for data")
    # the table of cells has the same figure
    assert row.time.data_wait_share == pytest.approx(0.16)


def step_seconds(load: float, rest: float, workers: int) -> float:
    """Mean step of a long run: a process that loads by itself, or workers that load steps in turn,
    each at a time.
    """
    if workers == 0:
        return load + rest
    free = [0.0] * workers
    now = 0.0
    count = 2000
    for step in range(count):
        worker = step % workers
        made = free[worker] + load
        now = max(now, made) + rest
        # A worker begins its next step at once, as far as the prefetching allows, which does not
        # bind it here.
        free[worker] = made
    return now / count


def advice(
    load: float, rest: float, workers: int, instance: str = G5.instance
) -> LoaderAdvice | None:
    step = step_seconds(load, rest, workers)
    data = PartSeconds(mean=step - rest, error=0.0)
    parts = StepParts(step=PartSeconds(mean=step, error=0.0), waiting=data)
    return advise_workers(replace(G5, instance=instance, loader_workers=workers), parts)


@pytest.mark.parametrize(("load", "workers"), list(product([0.02, 0.1, 0.25, 0.9], [0, 1, 2, 4])))
def test_the_advice_saves_the_promised_time(load: float, workers: int) -> None:
    rest = 0.1
    now = step_seconds(load, 0.1, workers)
    text = advice(load, rest, workers)
    if text is None:
        assert now == pytest.approx(rest, rel=0.08)
        return
    assert workers < text.loader_workers <= 7
    assert 1 - step_seconds(load, rest, text.loader_workers) / now == pytest.approx(
        text.saving, abs=0.03
    )
    assert text.is_bounded == (step_seconds(load, rest, 7) > rest * 1.05)


@pytest.mark.parametrize("instance", ["local.cpu", "ml.m7i.xlarge"])
def test_no_number_on_training_or_unknown_cores(instance: str) -> None:
    assert advice(0.5, 0.1, 0, instance) is None


def test_no_advice_for_a_possibly_random_wait() -> None:
    step = PartSeconds(mean=1.0, error=0.2)
    data = PartSeconds(mean=0.3, error=0.2)
    parts = StepParts(step=step, waiting=data)
    assert advise_workers(G5, parts) is None
    assert advise_workers(G5, None) is None


def waiting_parts(seconds: float) -> StepParts:
    return StepParts(
        step=PartSeconds(mean=1, error=0), waiting=PartSeconds(mean=seconds, error=0.01)
    )


def said(first: StepParts, second: StepParts, **changes: Any) -> list[str]:
    rows = (
        make_row(step_parts=first, **changes),
        make_row(SECOND, step_parts=second, seconds=make_estimate(1500.0)),
    )
    verdict = make_verdict(rows=rows, rivals=(make_rival(),))
    assert parse_verdict(verdict_document(verdict)) == verdict
    return [
        text
        for text in describe_verdict(verdict).support
        if any(words in text for words in ABOUT_STEPS)
    ]


def test_the_wait_of_a_finalist_and_the_advice_are_sentences(snapshot: Snapshot) -> None:
    advice = LoaderAdvice(loader_workers=8, saving=0.12, is_bounded=False)
    snapshot(said(waiting_parts(0.31), waiting_parts(0.01), loader_advice=advice))


@pytest.mark.parametrize("facts", [{}, {"run": {"task": "causal-lm"}}])
def test_a_log_with_waits_becomes_a_row_of_the_report(facts: dict[str, Any]) -> None:
    """Only a built-in task gets advice: a script's argument for its workers is its own."""
    suite = make_suite(
        training={"batch_size_per_device": 8}, matrix={"instance": ("ml.g5.2xlarge",)}
    )
    (cell,) = suite.cells
    log = log_lines(step_seconds=[0.1] * 200, wait_seconds=0.04, facts={"torch": "2", **facts})
    result = result_from(read_step_log({file_name(): log}), run=make_run(cell), suite=suite)
    assert parse_run_result(run_result_document(result)) == result
    report = report_of([result], suite)
    (row,) = report.verdict.rows
    steps = row.part(CellSteps)
    assert steps.step_parts is not None
    assert bool(steps.loader_advice) == bool(facts)
    section = render(report, FEATURES).partition("Why slow</h3>")[2].partition("</table>")[0]
    texts = [re.sub(r"<[^>]*>", "", cell) for cell in section.split("<td")[1:]]
    assert texts[1].rpartition(">")[2] == "40 %"
