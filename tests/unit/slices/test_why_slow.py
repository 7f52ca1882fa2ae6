"""What verdict and report say about the parts of a step."""

import re
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.core.measurement.test_step_parts import probe_line
from tests.unit.report.test_report import report_of
from tests.unit.run_samples import make_run, make_suite, result_from
from tests.unit.step_log_samples import file_name, log_lines
from tests.unit.verdict_samples import SECOND, make_estimate, make_rival, make_row, make_verdict
from traindyno.core.measurement.run_result import parse_run_result, run_result_document
from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.step_log import line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.cells import expand_cells
from traindyno.core.verdict.summarise import summarise
from traindyno.core.verdict.verdict import parse_verdict, verdict_document
from traindyno.core.verdict.verdict_text import describe_verdict
from traindyno.report.html import render
from traindyno.slices.slowness.verdict import CellSteps, LoaderAdvice

ABOUT_STEPS = ("waits for data", "By its probes", "within the noise", "By estimate")


def parts(data: float, *, communication: float = 0.1, is_probed: bool = True) -> StepParts:
    """A step of 1 s with 100 samples: 1,000 s for the work of the samples of a verdict."""
    of_data, exchange, known = (PartSeconds(mean=mean, error=0.01) for mean in (data, communication, 0.2))
    waiting = StepParts(samples_per_step=100, step=PartSeconds(mean=1, error=0), waiting=of_data, data=of_data)
    rest = PartSeconds(mean=0.8 - data - communication, error=0.01)
    if not is_probed:
        return waiting
    return replace(waiting, communication=exchange, optimizer=known, compute=rest, is_probed=True)


def said(first: StepParts, second: StepParts, **changes: Any) -> list[str]:
    rows = (make_row(step_parts=first, **changes), make_row(SECOND, step_parts=second, seconds=make_estimate(1500.0)))
    verdict = make_verdict(rows=rows, rivals=(make_rival(),))
    assert parse_verdict(verdict_document(verdict)) == verdict
    return [text for text in describe_verdict(verdict).support if any(words in text for words in ABOUT_STEPS)]


def test_the_finalists_parts_are_sentences() -> None:
    advice = LoaderAdvice(loader_workers=8, saving=0.12, is_bounded=False)
    assert said(parts(0.31), parts(0.01, communication=0.5), loader_advice=advice) == [
        "By its probes, a step of ddp is 31 % (± 2 %) loading data, 10 % (± 2 %) communication, 20 % (± 2 %) optimizer"
        " and 39 % (± 3 %) compute.",
        "By estimate, a step of ddp would take about 12 % less with loader_workers: 8.",
        "By its probes, a step of fsdp is 50 % (± 2 %) communication, 20 % (± 2 %) optimizer and 30 % (± 3 %) compute.",
        "Loading data is within the noise of the probes (± 2 %).",
    ]


def test_without_probes_a_wait_is_named_if_it_matters() -> None:
    waits, little = parts(0.31, is_probed=False), parts(0.01, is_probed=False)
    assert said(waits, little) == ["31 % (± 2 %) of a step of ddp waits for data, by its step log."]


@pytest.mark.parametrize("facts", [{}, {"run": {"task": "causal-lm"}}])
def test_a_log_with_probes_becomes_a_row_of_the_report(facts: dict[str, Any]) -> None:
    """Only a built-in task gets advice: a script's argument for its workers is its own."""
    suite = make_suite(training={"batch_size_per_device": 8}, matrix={"instance": ("ml.g5.2xlarge",)})
    (cell,) = expand_cells(suite)
    seconds = {line.WHOLE_STEP: 0.1, line.HELD_BATCHES: 0.06, line.NO_OPTIMIZER: 0.05}
    probes = [probe_line(name, [each] * 10) for name, each in seconds.items()]
    log = log_lines(step_seconds=[0.1] * 200, wait_seconds=0.04, after=probes, facts={"torch": "2", **facts})
    result = result_from(read_step_log({file_name(): log}), run=make_run(cell), suite=suite)
    assert parse_run_result(run_result_document(result)) == result
    assert summarise(result).time.probe_seconds == pytest.approx(1)
    report = report_of([result], suite)
    (row,) = report.verdict.rows
    steps = row.part(CellSteps)
    assert steps.step_parts is not None
    assert steps.step_parts.is_probed
    assert bool(steps.loader_advice) == bool(facts)
    section = render(report).partition("Why slow</h3>")[2].partition("</table>")[0]
    cells = [re.sub(r"<[^>]*>", "", cell) for cell in section.split("<td")[1:]]
    # waiting, data, communication of one process, optimizer, the rest
    assert [cell.rpartition(">")[2] for cell in cells][1:6] == [f"{share} % (± 0 %)" for share in (40, 40, 0, 10, 50)]
