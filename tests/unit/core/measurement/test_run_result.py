import json
from math import isnan

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import (
    completed_result,
    failed_result,
    known,
    make_cell,
    make_run,
    result_from,
    step_log_of,
)
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.costs.projection import project_run
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import parse_run_result, run_result_document
from traindyno.core.run.settings import LearningRate
from traindyno.core.step_log import line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.choices import Precision


def test_two_instances_take_twice_the_instance_hours() -> None:
    one = project_run(completed_result(make_cell(), 1))
    two = project_run(completed_result(make_cell(instance_count=2), 1))
    assert one is not None
    assert two is not None
    assert two.instance_hours == pytest.approx(2 * one.instance_hours)
    assert two.usd == 2 * (one.usd or 0)


def test_the_loss_is_the_mean_over_the_ranks_knowing_it() -> None:
    def of_rank(rank: int, loss: float | None) -> list[str]:
        return log_lines(rank=rank, world_size=3, step_seconds=[1.0] * 8, loss=lambda _: loss)

    files = {file_name(rank): of_rank(rank, loss) for rank, loss in enumerate((2.0, 4.0, None))}
    result = result_from(read_step_log(files))
    assert result.measured is not None
    # (2 + 4) / 2; the third rank logs none
    assert result.measured.loss.last == 3.0


def test_a_document_reads_back_equal_and_is_plain_json() -> None:
    cell = make_cell(learning_rate=LearningRate(base=1e-4, reference_batch_size=32))
    result = completed_result(cell, 1)
    document = json.loads(json.dumps(run_result_document(result), allow_nan=False))
    assert parse_run_result(document) == result
    assert parse_run_result(document).outcome is Outcome.COMPLETED
    assert type(run_result_document(result)["outcome"]) is str


def test_undecided_parts_of_a_run_are_stored_and_read() -> None:
    seconds = [1.0 + 0.001 * step for step in range(200)]
    seconds[120] += 40.0
    result = result_from(step_log_of(seconds))
    measured = parse_run_result(json.loads(json.dumps(run_result_document(result)))).measured
    assert measured == result.measured
    assert measured is not None
    (stall,) = measured.undecided_stalls
    # steps of 1.1 s on average
    assert stall.share == pytest.approx(40 / (199 + 19.9 + 40), rel=0.01)
    assert measured.drift is not None
    assert measured.drift.change == pytest.approx(0.18, abs=0.01)


def test_peak_memory_is_the_largest_of_all_steps() -> None:
    measured = completed_result(make_cell(), 1).measured
    assert measured is not None
    # 1,000 bytes at the first of 61 steps, and one more at each following step
    assert measured.peak_memory_bytes == 1060


def test_a_loss_without_a_number_is_kept_as_the_step_of_its_break() -> None:
    nan = float("nan")
    result = result_from(
        step_log_of([1.0] * 10, loss=lambda step: nan if step >= 6 else 3.0),
        outcome=Outcome.LOSS_DIVERGED,
    )
    assert result.measured is not None
    assert result.measured.loss.diverged_at_step == 6
    assert result.measured.loss.last == 3.0
    read = known(
        parse_run_result(
            json.loads(json.dumps(run_result_document(result), allow_nan=False))
        ).measured
    )
    assert [isnan(point.loss) for point in read.loss.points] == [False] * 6 + [True] * 4


def test_a_missing_rank_leaves_the_rate_unknown() -> None:
    files = {file_name(0): log_lines(rank=0, world_size=2, step_seconds=[1.0] * 30)}
    result = result_from(read_step_log(files))
    assert result.measured is not None
    assert result.samples_per_second is None
    assert project_run(result) is None
    assert any("no log of rank 1" in problem for problem in result.step_log_problems)


def test_a_failed_run_keeps_its_message_and_last_lines() -> None:
    result = failed_result(make_cell(), 1, Outcome.OUT_OF_MEMORY, "CUDA out of memory")
    assert result.measured is None
    assert result.step_log_problems == ("no step log was found",)
    assert parse_run_result(run_result_document(result)) == result


def test_the_peak_is_known_for_sixteen_bit_formats_only() -> None:
    def utilization(precision: Precision) -> float | None:
        result = result_from(
            step_log_of(
                [1.0] * 30, tokens=312, before=[line.model_line(START, 1, 0.25e12, "given")]
            ),
            run=make_run(make_cell(precision=precision)),
        )
        assert result.measured is not None
        assert result.measured.throughput is not None
        return result.measured.throughput.model_flops_utilization

    # 312 tokens/s x 0.25 TFLOP = 78 of the A100's 312 TFLOPS
    assert utilization(Precision.BF16) == pytest.approx(0.25)
    assert utilization(Precision.FP32) is None


def test_a_completed_run_with_a_diverged_loss_in_its_log_has_diverged() -> None:
    log = step_log_of(
        [1.0] * 60, after=[line.error_line(START + 9, "loss_diverged", "the loss of step 4 is nan")]
    )
    diverged = result_from(log)
    assert (diverged.outcome, diverged.message) == (
        Outcome.LOSS_DIVERGED,
        "the loss of step 4 is nan",
    )
    failed = result_from(log, outcome=Outcome.OUT_OF_MEMORY, message="full")
    assert (failed.outcome, failed.message) == (Outcome.OUT_OF_MEMORY, "full")


def test_work_is_counted_in_the_unit_of_the_task() -> None:
    tokens = completed_result(make_cell(), 1, facts={line.WORK_UNIT: line.TOKENS})
    rows = completed_result(make_cell(), 1, facts={line.WORK_UNIT: line.ROWS})
    # samples of 10 tokens
    assert (tokens.work_unit, tokens.work_per_example) == ("tokens", 10.0)
    assert (rows.work_unit, rows.work_per_example) == ("rows", 1.0)
    assert completed_result(make_cell(), 1).work_unit == "samples"


def test_steps_without_samples_have_no_throughput() -> None:
    result = completed_result(make_cell(), 1, samples=0)
    assert result.measured is not None
    assert result.samples_per_second is None
    assert project_run(result) is None


def test_a_completed_run_with_a_log_of_the_first_rank_only_says_so(snapshot: Snapshot) -> None:
    result = result_from(step_log_of([1.0] * 60, world_size=2))
    assert result.outcome is Outcome.USER_CODE_ERROR
    snapshot(str(result.message))
