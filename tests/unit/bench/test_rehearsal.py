"""The rehearsals' traces reproduce the posts' tables: the fit, one trace for each cell, and every claim's finding."""

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from bench.rehearsal_findings import differences
from bench.rehearsal_model import fit_scaling, residuals
from bench.rehearsal_traces import DOWNLOAD_SECONDS, PACKS, PRICES, STEPS, UPLOAD_SECONDS
from localcloud.sagemaker_service.job import Engine, Job, Status
from localcloud.sagemaker_service.simulated_log import write_stretch
from localcloud.sagemaker_service.trace import CONVERTER, Trace, choose_trace, read_work
from tests.unit.run_samples import make_attempt
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.cli.suite_loading import load_suite
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice, RunResult, build_run_result
from traindyno.core.step_log.line import evaluation_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.claim import parse_claims
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.claims import judge_claims
from traindyno.sagemaker.request import build_training_job_request

SUITES = Path(__file__).parents[3] / "suites"
# Trials differ, as an interval needs it, by far less than the claims' tolerances.
TRIALS = (0.9999, 1.0001)


def loaded(pack: str, name: str) -> Suite:
    """As ``traindyno run`` sends it, with the script's folder as a tarball in S3."""
    suite = load_suite(SUITES / pack / f"{name}.yaml").suite
    return replace(suite, workload=replace(suite.workload, source="s3://code/sourcedir.tar.gz"))


def test_the_model_of_albert_fits_every_published_figure_within_one_and_a_half_percent() -> None:
    found = [*residuals(fit_scaling())]
    # 4 times, 8 gains by loader workers, 4 gains by SMDDP
    assert len(found) == 16
    assert max(abs(residual.relative) for residual in found) < 0.015


def test_the_page_about_albert_shows_every_residual() -> None:
    page = (SUITES.parent / "docs/experiments/albert-scaling.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    for residual in residuals(fit_scaling()):
        (row,) = [row for row in rows if row.startswith(f"| {residual.name} |")]
        assert row.endswith(f"| {residual.relative * 100:+.2f} % |")


def test_the_model_at_a_point_that_is_worked_out_by_hand() -> None:
    model = fit_scaling()
    # without data to wait for: step + 16 samples + 2 nodes
    expected = model.step + 16 * model.sample + 2 * model.node
    assert model.step_seconds(nodes=2, workers=12, batch=16) == pytest.approx(expected)
    # half of the workers leave half of the waiting
    waiting = model.step_seconds(nodes=2, workers=0, batch=16) - expected
    assert model.step_seconds(nodes=2, workers=6, batch=16) == pytest.approx(expected + waiting / 2)


@pytest.mark.parametrize("pack", sorted(PACKS))
def test_a_rehearsal_has_cells_of_its_original(pack: str) -> None:
    original = {cell.cell_id for cell in expand_cells(loaded(pack, "original"))}
    rehearsed = {cell.cell_id for cell in expand_cells(loaded(pack, "rehearsal"))}
    assert len(rehearsed) > 1
    assert rehearsed <= original


def job_of(run: Run, suite: Suite) -> Job:
    request = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)
    return Job(
        name=request["TrainingJobName"],
        arn="arn",
        engine=Engine.REPLAY,
        request=request,
        created_ms=0,
        modified_ms=0,
        status=Status.IN_PROGRESS,
        transitions=(),
    )


def simulated_result(run: Run, suite: Suite, traces: list[Trace]) -> RunResult:
    """As the replay engine would play it, with one process in the place of all."""
    job = job_of(run, suite)
    work, trace = read_work(job), choose_trace(job, traces)
    assert trace.step_seconds is not None, f"no trace for {run.cell.label}"
    seconds = [trace.step_seconds * TRIALS[run.trial - 1]] * STEPS
    training = trace.load_seconds + trace.compile_seconds + sum(seconds)
    phases = {"downloading": DOWNLOAD_SECONDS, "training": training, "uploading": UPLOAD_SECONDS}
    samples = (trace.samples_per_step or 0) * work.world_size
    ended = () if trace.accuracy is None else (evaluation_line(START, STEPS, {"accuracy": trace.accuracy}),)
    log = log_lines(step_seconds=seconds, samples=samples, after=ended)
    return build_run_result(
        run,
        suite=suite,
        outcome=Outcome.COMPLETED,
        attempts=[make_attempt(billable_seconds=sum(phases.values()), phase_seconds=phases)],
        step_log=read_step_log({file_name(): log}),
        price=PaidPrice(usd_per_instance_hour=Decimal(PRICES[run.cell.settings.instance])),
        is_simulated=True,
    )


def test_a_simulated_job_evaluates_at_its_end_where_its_trace_has_an_accuracy() -> None:
    suite = loaded("bert-trainium", "rehearsal")
    traces = [CONVERTER.structure(document, Trace) for document in PACKS["bert-trainium"]()]
    (run, *_) = trial_runs("execution-1", expand_cells(suite), [1])
    job = job_of(run, suite)
    work, trace = read_work(job), choose_trace(job, traces)
    stretch = write_stretch(job, trace, work, start_ms=0, until_ms=10**9, first_step=0)
    log = read_step_log({f"{job.name}/{name}": text.splitlines(keepends=True) for name, text in stretch.files.items()})
    assert [each.metrics for each in log.evaluations] == [{"accuracy": 0.984}]


@pytest.mark.parametrize("pack", sorted(PACKS))
def test_the_claims_come_out_as_the_posts_own_tables_say(pack: str) -> None:
    """Each run by its trace, without a cloud; ``make rehearse`` plays the same through all of the lab."""
    suite = loaded(pack, "rehearsal")
    traces = [CONVERTER.structure(document, Trace) for packed in PACKS.values() for document in packed()]
    runs = trial_runs("execution-1", expand_cells(suite), range(1, len(TRIALS) + 1))
    results = [simulated_result(run, suite, traces) for run in runs]
    judged = judge_claims(parse_claims(suite.claims or {}), expand_cells(suite), results)
    assert [*differences(pack, {each.claim.claim_id: each.finding.value for each in judged})] == []
