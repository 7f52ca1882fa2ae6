"""The rehearsals' traces play the posts' tables: the fit, one trace for each cell, and every
claim's finding.
"""

import csv
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from bench.rehearsal_findings import differences
from bench.rehearsal_model import fit_scaling, residuals
from bench.rehearsal_traces import (
    DOWNLOAD_SECONDS,
    GPTJ_BLOCKS,
    PACKS,
    PRICES,
    STEPS,
    UPLOAD_SECONDS,
)
from bench.transformer_flops import GPT_J
from localcloud.sagemaker_service.jobs.job import Engine, Status, TrainingJob
from localcloud.sagemaker_service.jobs.job_work import read_work
from localcloud.sagemaker_service.replay.simulated_log import simulated_facts, write_stretch
from localcloud.sagemaker_service.replay.trace import (
    CONVERTER,
    ImpliedRate,
    Trace,
    choose_trace,
    implied_rate,
)
from tests.unit.run_samples import make_attempt, result_from
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.step_log_samples import START, file_name, log_lines
from tests.unit.suites import with_staged_source
from traindyno.api.suite_loading import load_suite
from traindyno.core.measurement.run_result import PaidPrice, RunResult
from traindyno.core.step_log.line import evaluation_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.cell_runs import group_runs
from traindyno.sagemaker.request import build_training_job_request
from traindyno.slices.claims.lab import ClaimFinding, ClaimJudgement, judge_claims
from traindyno.slices.claims.suite import parse_claims

SUITES = Path(__file__).parents[3] / "suites"
# Trials differ, as an interval needs it, by far less than the claims' tolerances.
TRIALS = (0.9999, 1.0001)


def loaded(pack: str, name: str) -> Suite:
    return with_staged_source(load_suite(SUITES / pack / f"{name}.yaml").suite)


def test_model_of_albert_fits_every_published_figure_within_1_5_percent() -> None:
    deviations = [*residuals(fit_scaling())]
    # 4 times, 8 gains by loader workers, 4 gains by SMDDP
    assert len(deviations) == 16
    assert max(abs(residual.relative) for residual in deviations) < 0.015


def test_the_table_of_albert_has_every_residual() -> None:
    with (SUITES.parent / "docs/results/albert_residuals.csv").open(newline="") as file:
        rows = [
            [row["figure"], row["residual of the time or ratio"]] for row in csv.DictReader(file)
        ]
    assert rows == [
        [residual.name, f"{residual.relative * 100:+.2f} %"]
        for residual in residuals(fit_scaling())
    ]


def test_the_model_at_a_point_worked_out_by_hand() -> None:
    model = fit_scaling()
    # without data to wait for: step + 16 samples + 2 nodes
    expected = model.step + 16 * model.sample + 2 * model.node
    assert model.step_seconds(nodes=2, workers=12, batch=16) == pytest.approx(expected)
    # half of the workers leave half of the waiting
    waiting = model.step_seconds(nodes=2, workers=0, batch=16) - expected
    assert model.step_seconds(nodes=2, workers=6, batch=16) == pytest.approx(expected + waiting / 2)


@pytest.mark.parametrize("pack", sorted(PACKS))
def test_a_rehearsal_has_cells_of_its_original(pack: str) -> None:
    original = {cell.cell_id for cell in loaded(pack, "original").cells}
    rehearsed = {cell.cell_id for cell in loaded(pack, "rehearsal").cells}
    assert len(rehearsed) > 1
    assert rehearsed <= original


def job_of(run: Run, suite: Suite) -> TrainingJob:
    request = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)
    return TrainingJob(
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
    """What the replay engine would play, with one process in the place of all."""
    job = job_of(run, suite)
    work = read_work(job)
    trace = choose_trace(job, traces)
    assert trace.step_seconds is not None, f"no trace for {run.cell.label}"
    seconds = [trace.step_seconds * TRIALS[run.trial - 1]] * STEPS
    training = trace.load_seconds + trace.compile_seconds + sum(seconds)
    phases = {"downloading": DOWNLOAD_SECONDS, "training": training, "uploading": UPLOAD_SECONDS}
    samples = (trace.samples_per_step or 0) * work.world_size
    ended = (
        ()
        if trace.accuracy is None
        else (evaluation_line(START, STEPS, {"accuracy": trace.accuracy}),)
    )
    log = log_lines(
        step_seconds=seconds, samples=samples, after=ended, facts=simulated_facts(job, trace, work)
    )
    return result_from(
        read_step_log({file_name(): log}),
        run=run,
        suite=suite,
        attempts=[make_attempt(billable_seconds=sum(phases.values()), phase_seconds=phases)],
        price=PaidPrice(usd_per_instance_hour=Decimal(PRICES[run.cell.settings.instance])),
        is_simulated=True,
    )


def test_a_simulated_job_with_an_accuracy_in_its_trace_evaluates_at_its_end() -> None:
    suite = loaded("bert-trainium", "rehearsal")
    traces = [CONVERTER.structure(document, Trace) for document in PACKS["bert-trainium"]()]
    (run, *_) = trial_runs("execution-1", suite.cells, [1])
    job = job_of(run, suite)
    work = read_work(job)
    trace = choose_trace(job, traces)
    stretch = write_stretch(job, trace, work, start_ms=0, until_ms=10**9, first_step=0)
    log = read_step_log(
        {
            f"{job.name}/{name}": text.splitlines(keepends=True)
            for name, text in stretch.files.items()
        }
    )
    assert [
        evaluation.metrics for session in log.sessions for evaluation in session.evaluations
    ] == [{"accuracy": 0.984}]


def judged(pack: str) -> tuple[ClaimJudgement, ...]:
    """Each run by its trace, without a cloud; ``make rehearse`` plays the same through all of the
    lab.
    """
    suite = loaded(pack, "rehearsal")
    traces = traces_of(*PACKS)
    runs = trial_runs("execution-1", suite.cells, range(1, len(TRIALS) + 1))
    results = [simulated_result(run, suite, traces) for run in runs]
    return judge_claims(
        parse_claims(suite.features["claims"]), group_runs(suite, suite.cells, results), results
    )


@pytest.mark.parametrize("pack", sorted(PACKS))
def test_the_claims_come_out_as_the_posts_own_tables_say_and_the_page_counts_them(
    pack: str,
) -> None:
    judgements = judged(pack)
    assert [
        *differences(
            pack, {judgement.claim.claim_id: judgement.finding.value for judgement in judgements}
        )
    ] == []
    page = page_text(pack)
    count = Counter(judgement.finding for judgement in judgements)
    assert (
        f"Of {len(judgements)} claims, {count[ClaimFinding.PLAYED]} are played and"
        f" {count[ClaimFinding.REPRODUCED]} reproduced" in page
    )


def page_text(pack: str) -> str:
    page = (SUITES.parent / "docs/experiments" / f"{pack}.md").read_text(encoding="utf-8")
    return " ".join(page.split())


def traces_of(*packs: str) -> list[Trace]:
    return [CONVERTER.structure(document, Trace) for pack in packs for document in PACKS[pack]()]


def implied_rates(pack: str) -> dict[str, ImpliedRate]:
    """Cell → the share of the peak that its trace implies."""
    suite = loaded(pack, "rehearsal")
    traces = traces_of(pack)
    jobs = {
        run.cell.label: job_of(run, suite) for run in trial_runs("execution-1", suite.cells, [1])
    }
    return {
        label: implied_rate(choose_trace(job, traces), job, read_work(job))
        for label, job in jobs.items()
    }


@pytest.mark.parametrize(
    "pack", ["albert-scaling", "bert-trainium", "gpt2-compiler", "gptj-parallel"]
)
def test_the_rehearsals_stay_below_the_peak_of_their_devices(pack: str) -> None:
    for rate in implied_rates(pack).values():
        assert rate.share_of_peak is not None
        assert 0.001 < rate.share_of_peak < 0.6
        assert "config.json" in rate.text


def test_an_epoch_of_67349_blocks_in_8_minutes_is_refused_with_its_arithmetic() -> None:
    """The figures that this rehearsal once had: sentences were taken for blocks of 2,048 tokens."""
    suite = loaded("gptj-parallel", "rehearsal")
    traces = traces_of("gptj-parallel")
    (run, *_) = trial_runs("execution-1", suite.cells, [1])
    job = job_of(run, suite)
    trace = replace(choose_trace(job, traces), step_seconds=480 / (67_349 / 8))
    rate = implied_rate(trace, job, read_work(job))
    # 67,349 x 7.758e13 FLOPs / 480 s = 10.89 PFLOPS, of 8 x 312 TFLOPS = 2.496 PFLOPS
    assert GPT_J.training_flops_per_sample == pytest.approx(7.758e13, rel=1e-3)
    assert rate.share_of_peak == pytest.approx(4.361, rel=1e-3)
    assert rate.is_impossible
    assert "8 samples x" in rate.text
    assert "of the peak of 8 devices x 312.0 TFLOPS (1 x ml.p4d.24xlarge)" in rate.text


@pytest.mark.parametrize("suite_name", ["original", "rehearsal"])
def test_gpt_js_epoch_is_in_the_unit_of_its_script(suite_name: str) -> None:
    """GPT-2's pack gives the number: an epoch of the same data and vocabulary has 1,750 blocks of
    512 tokens.
    """
    gpt2 = loaded("gpt2-compiler", "original").workload
    assert gpt2.hyperparameters["block_size"] == 512
    blocks = gpt2.examples // int(str(gpt2.hyperparameters["num_train_epochs"]))
    rows = 67_349
    group = 1000
    per_group = round(blocks * group / rows)
    # a group's tokens: between those of its blocks, and nearly one block more
    least = per_group * 512
    most = per_group * 512 + 511
    assert (least // 2048, most // 2048) == (6, 6)
    last = rows % group / group
    assert (int(least * last) // 2048, int(most * last) // 2048) == (2, 2)
    assert (
        rows // group * 6 + 2
        == loaded("gptj-parallel", suite_name).workload.examples
        == GPTJ_BLOCKS
    )
