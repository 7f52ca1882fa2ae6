"""A cell that searches its batch: one trial first, and the batch that it found for all later
ones.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.sentences import Snapshot
from tests.unit.report.test_report import report_of
from tests.unit.run_samples import completed_result, failed_result
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import says, script_document, unprepared_document
from traindyno.core.errors import SuiteInvalid
from traindyno.core.jobs.job import Job
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_end import BatchFinding
from traindyno.core.measurement.run_result import RunResult, parse_run_result, run_result_document
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.planning.refusals import refuse_searches
from traindyno.core.run.processes import global_batch_size, planned_learning_rate
from traindyno.core.run.settings import Settings
from traindyno.core.search.largest_batch import Probe
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.runs import trained_settings
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import parse_part
from traindyno.core.verdict.cell_figures import CELL_FIGURES
from traindyno.core.verdict.found_batch import with_batches
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.next_round import plan_round
from traindyno.features import FEATURES
from traindyno.parent.batch_search import with_batch
from traindyno.parent.document import read_document
from traindyno.report.html import render
from traindyno.sagemaker.job_document import job_document

INSTANCE = "ml.g5.xlarge"
RATE = {"base": 0.001, "reference_batch_size": 32, "scale_with": "global_batch"}
(FIGURE,) = (figure for figure in CELL_FIGURES if figure.heading == "Batch found")
SEARCH = {"search": "largest", "begin": 4}
FINDING = BatchFinding(
    batch=6,
    probes=(
        Probe(batch=4, fits=True, peak_bytes=4 * 2**30, samples_per_second=10.0),
        Probe(batch=8, fits=False),
        Probe(batch=6, fits=True, peak_bytes=6 * 2**30, samples_per_second=12.0),
    ),
)
ONE_FAILS = Probe(batch=1, fits=False)
TWO_FITS = Probe(batch=2, fits=True)


def suite_of(trials: int = 3, **training: object) -> Suite:
    given = {"instance": INSTANCE, "batch_size_per_device": SEARCH, **training}
    return parse_suite(unprepared_document(training=given, measurement={"trials": trials}))


def with_finding(result: RunResult, finding: BatchFinding) -> RunResult:
    return replace(result, attempts=(replace(result.attempts[-1], batch=finding),))


def first_results(suite: Suite, batches: Sequence[int | None]) -> list[RunResult]:
    results = []
    for cell, batch in zip(suite.cells, batches, strict=True):
        if batch is None:
            results.append(failed_result(cell, 1, Outcome.OUT_OF_MEMORY))
            continue
        results.append(
            with_finding(completed_result(cell, 1, suite=suite), replace(FINDING, batch=batch))
        )
    return results


def test_a_grid_measures_the_other_trials_with_the_batch_of_the_first() -> None:
    suite = suite_of()
    cells = suite.cells
    first = plan_round(suite, cells, execution_id="e", round_number=1)
    assert [(run.trial, run.searches_batch) for run in first] == [(1, True)] * 2
    results = first_results(suite, [6, 24])
    runs = plan_round(suite, cells, execution_id="e", round_number=2, results=results)
    resolved = with_batches(runs, results, {})
    assert sorted(
        (run.cell.label, run.trial, trained_settings(run).batch_size) for run in resolved
    ) == [("compiled", 2, 24), ("compiled", 3, 24), ("eager", 2, 6), ("eager", 3, 6)]
    assert not any(run.searches_batch for run in resolved)
    later = [
        replace(completed_result(run.cell, run.trial, suite=suite), run=run) for run in resolved
    ]
    assert (
        plan_round(suite, cells, execution_id="e", round_number=3, results=[*results, *later]) == ()
    )


def test_a_cell_without_a_fitting_batch_has_no_further_trial() -> None:
    suite = suite_of()
    results = first_results(suite, [6, None])
    runs = plan_round(suite, suite.cells, execution_id="e", round_number=2, results=results)
    assert {(run.cell.label, run.trial) for run in runs} == {("eager", 2), ("eager", 3)}


@pytest.mark.parametrize("accumulation", [1, 3])
def test_the_learning_rate_follows_the_searched_batch(accumulation: int) -> None:
    """As a later trial trains with it; the parent gives the first trial the same settings with the
    same batch.
    """
    suite = suite_of(2, learning_rate=RATE, gradient_accumulation_steps=accumulation)
    assert {planned_learning_rate(cell.settings) for cell in suite.cells} == {None}
    results = first_results(suite, [6, 24])
    runs = plan_round(suite, suite.cells, execution_id="e", round_number=2, results=results)
    for run in with_batches(runs, results, {}):
        settings = trained_settings(run)
        batch = {"eager": 6, "compiled": 24}[run.cell.label]
        assert global_batch_size(settings, 1) == batch * accumulation
        assert planned_learning_rate(settings) == pytest.approx(0.001 * batch * accumulation / 32)


def test_the_learning_rate_of_the_searching_trial_follows_the_parents_batch(tmp_path: Path) -> None:
    suite = suite_of(learning_rate=RATE)
    first, *_ = plan_round(suite, suite.cells, execution_id="e", round_number=1)
    job = Job(execution_id="e", job_id="j1", runs=(replace(first, job_id="j1"),))
    path = tmp_path / "document.json"
    path.write_text(json.dumps(job_document(job, suite, SETTINGS)))
    (order,) = read_document(path).runs
    measured = parse_part(with_batch(order, 48).hyperparameters["settings"], Settings)
    assert planned_learning_rate(measured) == pytest.approx(0.001 * 48 / 32)


@pytest.mark.parametrize(
    ("outcome", "finding", "shown"),
    [
        (Outcome.COMPLETED, FINDING, 6),
        (
            Outcome.OUT_OF_MEMORY,
            BatchFinding(batch=1, probes=(Probe(batch=2, fits=False), ONE_FAILS)),
            "none fits",
        ),
        (
            Outcome.COMPLETED,
            BatchFinding(batch=2, probes=(Probe(batch=1, fits=True), TWO_FITS)),
            "2 or more",
        ),
        # The rate of a smaller batch was the best; larger ones were not tried.
        (Outcome.COMPLETED, BatchFinding(batch=1, probes=(Probe(batch=1, fits=True), TWO_FITS)), 1),
        (
            Outcome.USER_CODE_ERROR,
            BatchFinding(batch=2, probes=(TWO_FITS, Probe(batch=4, fits=False))),
            2,
        ),
        # The first probe failed for another reason than memory.
        (Outcome.USER_CODE_ERROR, BatchFinding(batch=1, probes=()), None),
    ],
)
def test_the_row_names_the_searched_batch(
    outcome: Outcome, finding: BatchFinding, shown: object
) -> None:
    suite = suite_of(trials=1)
    cell, _ = suite.cells
    ended = (
        completed_result(cell, 1, suite=suite)
        if outcome is Outcome.COMPLETED
        else failed_result(cell, 1, outcome)
    )
    row, _ = judge(suite, suite.cells, [with_finding(ended, finding)]).rows
    assert FIGURE.value(row) == shown
    assert FIGURE.plain_text(FIGURE.value(row)) == ("unknown" if shown is None else str(shown))


@pytest.mark.parametrize(
    ("whole", "shown"), [(2, 2), (3, 3), (4, "2 or more"), (None, "2 or more")]
)
def test_no_larger_batch_is_possible_than_the_global_one_allows(
    whole: int | None, shown: object
) -> None:
    """Each probe fits.

    The type has one device: the batch per device is 2 of 2, 3 of 3, or 2 of 4 samples.
    """
    kept = {} if whole is None else {"global_batch_size": whole}
    suite = suite_of(1, batch_size_per_device={**SEARCH, "begin": 1}, **kept)
    cell, _ = suite.cells
    batch = shown if isinstance(shown, int) else 2
    finding = BatchFinding(
        batch=batch, probes=tuple(Probe(batch=size, fits=True) for size in {1, batch})
    )
    report = report_of([with_finding(completed_result(cell, 1, suite=suite), finding)], suite)
    assert FIGURE.value(report.verdict.row(cell.cell_id)) == shown
    section = render(report, FEATURES).partition('id="batches"')[2].partition("</section>")[0]
    assert ("or more" in section) == (shown == "2 or more")


def test_the_cell_and_its_stored_result_show_the_batch() -> None:
    suite = suite_of(trials=1)
    results = first_results(suite, [6, 24])
    assert [parse_run_result(run_result_document(result)).found_batch for result in results] == [
        6,
        24,
    ]
    assert parse_run_result(run_result_document(results[0])).batch_finding == FINDING
    rows = judge(suite, suite.cells, results).rows
    assert [FIGURE.value(row) for row in rows] == [6, 24]
    assert FIGURE.is_known_of(rows)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"measurement": {"jobs": "separate"}}, "measurement.jobs: expected shared"),
        ({"measurement": {"save_model": True}}, "measurement.save_model: expected false"),
        (
            {
                "training": {
                    "instance": INSTANCE,
                    "batch_size_per_device": {**SEARCH, "argument": "batch"},
                }
            },
            "training.batch_size_per_device.argument: only task script",
        ),
    ],
)
def test_a_suite_without_a_searchable_batch_is_refused(
    changes: dict[str, object], problem: str
) -> None:
    training = {"instance": INSTANCE, "batch_size_per_device": SEARCH}
    with pytest.raises(SuiteInvalid) as refused:
        parse_suite(unprepared_document(**{"training": training, **changes}))
    assert [str(refusal) for refusal in refused.value.problems if says(str(refusal), problem)]


def test_a_script_names_the_argument_for_its_batch() -> None:
    with pytest.raises(SuiteInvalid) as refused:
        parse_suite(script_document(training={"batch_size_per_device": SEARCH}))
    assert says(
        str(refused.value.problems[0]), "training.batch_size_per_device.argument: expected the name"
    )


@pytest.mark.parametrize("batch", [None, 24])
def test_the_jobs_document_names_the_probes_before_the_search_ends(batch: int | None) -> None:
    """A text that the workload has as the batch is replaced."""
    searched = {**SEARCH, "argument": "samples"}
    document = script_document(training={"batch_size_per_device": searched})
    document["workload"]["hyperparameters"]["samples"] = "16"
    suite = parse_suite(document)
    runs = plan_round(suite, suite.cells, execution_id="e", round_number=1)
    (job,) = share_jobs([replace(run, found_batch=batch, job_id="j1") for run in runs], suite)
    (run,) = job_document(Job(execution_id="e", job_id="j1", runs=job.runs), suite, SETTINGS)[
        "runs"
    ]
    assert run["hyperparameters"]["samples"] == (batch or 4)
    place = run["arguments"].index("--samples")
    assert run["arguments"][place + 1] == str(batch or 4)
    order = {"choice": "largest", "first": 4, "step": 1, "path": ["samples"]}
    assert run.get("batch") == (None if batch else order)


def test_a_cell_unable_to_share_a_job_can_search_no_batch(snapshot: Snapshot) -> None:
    suite = replace(suite_of(), include=({"strategy": Strategy.SMDDP},))
    alone = suite.cells[-1]
    (refusal,) = refuse_searches(suite)
    assert f"cell {alone.label} ({alone.cell_id}) searches its batch" in refusal
    snapshot(refusal)
