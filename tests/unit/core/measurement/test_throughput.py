import pytest

from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.measurement.throughput import Throughput, measure_table, measure_throughput, percentile
from traindyno.core.measurement.throughput_definitions import compute_definitions
from traindyno.core.step_log import line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import StepTable, tabulate_steps


def table_of(*ranks: list[str]) -> StepTable:
    log = read_step_log({file_name(rank): lines for rank, lines in enumerate(ranks)})
    assert log.measured is not None
    return tabulate_steps(log.measured)


def measure(table: StepTable, *, warmup_steps: int = 0, **known: float) -> Throughput:
    throughput = measure_throughput(
        table,
        measure_table(table, warmup_steps=warmup_steps),
        device_count=len(table.ranks),
        flops_per_token=known.get("flops_per_token"),
        peak_flops_per_device=known.get("peak_flops_per_device"),
    )
    assert throughput is not None
    return throughput


def rate_by(key: str, table: StepTable, *, warmup_steps: int = 0) -> float | None:
    rates = {rate.key: rate.samples_per_second for rate in compute_definitions(table, warmup_steps=warmup_steps)}
    return rates[key]


def test_all_ranks_work_over_the_slowest_ranks_window() -> None:
    table = table_of(
        log_lines(rank=0, world_size=2, step_seconds=[9.0, 1.0, 1.0], samples=8, tokens=80),
        log_lines(rank=1, world_size=2, step_seconds=[9.0, 1.5, 1.0], samples=8, tokens=80),
    )
    throughput = measure(table, warmup_steps=1)
    # 2 ranks x 2 steps x 8 = 32 samples; rank 1 took 1.5 + 1.0 = 2.5 s: 12.8 /s, 6.4 per device
    assert throughput.seconds == pytest.approx(2.5)
    assert throughput.samples == 32
    assert throughput.samples_per_second == pytest.approx(12.8)
    assert throughput.samples_per_second_per_device == pytest.approx(6.4)
    # 320 tokens in 2.5 s
    assert throughput.tokens_per_second == pytest.approx(128.0)
    assert throughput.tokens_per_second_per_device == pytest.approx(64.0)
    assert (throughput.first_step, throughput.last_step, throughput.steps) == (1, 2, 2)
    assert throughput.steps_per_second == pytest.approx(0.8)
    assert throughput.step_times.mean_seconds == pytest.approx(1.25)
    assert throughput.recurring_share == pytest.approx(0)


def test_waiting_for_data_counts_and_is_named() -> None:
    throughput = measure(table_of(log_lines(step_seconds=[1.0] * 4, wait_seconds=0.25, samples=8)))
    # 32 samples in 4 s, of which 1 s was waiting
    assert throughput.samples_per_second == pytest.approx(8.0)
    assert throughput.data_wait_share == pytest.approx(0.25)


@pytest.mark.parametrize(("name", "seconds"), [("evaluate", 14.0), ("load", 4.0)])
def test_a_phase_between_steps_counts_as_it_was_seen_unless_it_happens_once(name: str, seconds: float) -> None:
    first = log_lines(step_seconds=[1.0, 1.0], is_ended=False)
    second = log_lines(
        step_seconds=[1.0, 1.0],
        first_step=2,
        start=START + 12,
        after=[line.phase_line(name, START + 2, START + 12)],
    )[1:]
    throughput = measure(table_of(first + second))
    # 4 steps of 1 s, and 10 s in between
    assert throughput.seconds == pytest.approx(seconds)


def test_time_between_steps_that_nothing_explains_does_count() -> None:
    lines = (
        log_lines(step_seconds=[1.0], is_ended=False) + log_lines(step_seconds=[1.0], first_step=1, start=START + 3)[1:]
    )
    # from START to START + 4
    assert measure(table_of(lines)).seconds == pytest.approx(4.0)


def test_model_flops_utilization_by_hand() -> None:
    table = table_of(log_lines(step_seconds=[0.5] * 4, tokens=1000))
    throughput = measure(table, flops_per_token=6e9, peak_flops_per_device=100e12)
    # 2000 tokens/s x 6 GFLOPs = 12 TFLOPS of 100
    assert throughput.tflops_per_device == pytest.approx(12.0)
    assert throughput.model_flops_utilization == pytest.approx(0.12)


@pytest.mark.parametrize("micro_batch_waits", [0.0, 0.25])
def test_utilization_of_a_mesh_is_of_all_its_devices(micro_batch_waits: float) -> None:
    """Pipeline 2 x shard 2 x tensor 2: two replicas of four processes, which log a quarter of their tokens each."""
    of_replica, seconds = 4000, 0.5 + micro_batch_waits
    table = table_of(
        *(log_lines(rank=rank, world_size=8, step_seconds=[seconds] * 4, tokens=of_replica // 4) for rank in range(8))
    )
    throughput = measure(table, flops_per_token=6e9, peak_flops_per_device=100e12)
    # 2 replicas x 4,000 tokens x 6 GFLOPs of the whole model / 8 devices: 6 TFLOPs of each in a step
    assert throughput.tflops_per_device == pytest.approx(6.0 / seconds)
    assert throughput.model_flops_utilization == pytest.approx(0.06 / seconds)


def test_an_unknown_peak_leaves_utilization_unknown() -> None:
    table = table_of(log_lines(step_seconds=[0.5] * 4, tokens=1000))
    assert measure(table, flops_per_token=6e9).model_flops_utilization is None


def test_tokens_that_a_step_did_not_count_are_unknown() -> None:
    assert measure(table_of(log_lines(step_seconds=[1.0], tokens=None))).tokens_per_second is None


def test_no_steps_after_warm_up_is_no_throughput() -> None:
    table = table_of(log_lines(step_seconds=[1.0]))
    step_time = measure_table(table, warmup_steps=1)
    throughput = measure_throughput(table, step_time, device_count=1, flops_per_token=None, peak_flops_per_device=None)
    assert throughput is None


def test_percentiles_lie_between_neighbours() -> None:
    # position 0.9 x 4 = 3.6: 4 + 0.6 x (9 - 4)
    assert percentile([1.0, 2.0, 3.0, 4.0, 9.0], 0.9) == pytest.approx(7.0)


def test_definitions_differ_by_a_fifth_if_a_tenth_of_steps_is_three_times_slower() -> None:
    # 8 samples a step; 90 steps of 0.25 s at 32/s and 10 of 0.75 s at 10.667/s:
    # mean of rates (90 x 32 + 10 x 10.667) / 100 = 29.87; true 800 / (22.5 + 7.5) = 26.67; median 32
    table = table_of(log_lines(step_seconds=([0.25] * 9 + [0.75]) * 10, samples=8))
    assert measure(table).samples_per_second == pytest.approx(26.667, abs=1e-3)
    assert rate_by("superbench", table) == pytest.approx(29.867, abs=1e-3)
    assert rate_by("smp_median", table) == pytest.approx(32.0)


def test_hf_trainer_counts_the_first_step() -> None:
    table = table_of(log_lines(step_seconds=[6.0, 1.0, 1.0], samples=8))
    # 24 samples in 8 s
    assert rate_by("hf_trainer", table, warmup_steps=1) == pytest.approx(3.0)


def test_hf_trainer_counts_until_the_last_rank_ends() -> None:
    table = table_of(
        log_lines(rank=0, world_size=2, step_seconds=[1.0] * 4, samples=8),
        log_lines(rank=1, world_size=2, step_seconds=[1.0] * 3 + [5.0], samples=8),
    )
    # 64 samples of both ranks in 8 s
    assert rate_by("hf_trainer", table) == pytest.approx(8.0)


def test_smp_running_mean_starts_after_30_steps() -> None:
    table = table_of(log_lines(step_seconds=[4.0] * 30 + [1.0, 2.0], samples=8))
    # the mean of 8 /s and 4 /s
    assert rate_by("smp_running_mean", table) == pytest.approx(6.0)
    assert rate_by("smp_running_mean", table_of(log_lines(step_seconds=[1.0] * 30))) is None


def test_sky_callback_goes_from_begin_to_begin() -> None:
    table = table_of(log_lines(step_seconds=[9.0, 1.0, 2.0, 100.0], samples=6))
    # begins of steps 1 to 3 lie 3 s apart: 2 steps x 6 samples / 3 s; the last step's own 100 s never count
    assert rate_by("sky_callback", table) == pytest.approx(4.0)
    # two begins are enough, and the samples of the step between them count
    unequal = log_lines(step_seconds=[1.0, 2.0], samples=6, is_ended=False)
    unequal += log_lines(step_seconds=[1.0], samples=10, first_step=2, start=START + 3)[1:]
    assert rate_by("sky_callback", table_of(unequal)) == pytest.approx(8 / 2)


def test_optimum_benchmark_is_too_high_by_the_number_of_steps() -> None:
    rank = {"step_seconds": [0.5] * 100, "samples": 8, "world_size": 8}
    table = table_of(*(log_lines(rank=index, **rank) for index in range(8)))  # type: ignore[arg-type]
    # 100 steps x 8 samples / 0.5 s = 1600 of one rank; the truth is 8 x 8 / 0.5 = 128
    assert rate_by("optimum_benchmark", table) == pytest.approx(1600.0)
    assert measure(table).samples_per_second == pytest.approx(128.0)


def test_optimum_benchmark_does_not_see_waiting_for_data() -> None:
    table = table_of(log_lines(step_seconds=[1.0] * 10, wait_seconds=0.75, samples=8))
    # 80 samples / 0.25 s
    assert rate_by("optimum_benchmark", table) == pytest.approx(320.0)


def test_llm_foundry_reads_the_window_after_batch_30() -> None:
    table = table_of(log_lines(step_seconds=[1.0] * 20 + [0.5] * 10 + [7.0] * 10, samples=8))
    # 10 steps x 8 samples / 5 s
    assert rate_by("llm_foundry", table) == pytest.approx(16.0)
    assert rate_by("llm_foundry", table_of(log_lines(step_seconds=[1.0] * 29))) is None


def test_torchtitan_reads_steps_81_to_90() -> None:
    table = table_of(log_lines(step_seconds=[1.0] * 80 + [0.25] * 10 + [9.0], samples=2))
    # 10 steps x 2 samples / 2.5 s
    assert rate_by("torchtitan", table) == pytest.approx(8.0)


def test_llmb_reads_iterations_35_to_44() -> None:
    table = table_of(log_lines(step_seconds=[5.0] * 34 + [3.0, 4.0] + [1.5] * 6 + [1.0, 3.0] + [5.0] * 6, samples=8))
    # 8 samples / 2 s, the mean of the ten
    assert rate_by("llmb", table) == pytest.approx(4.0)


def test_milabench_drops_the_least_and_the_greatest_rate() -> None:
    table = table_of(log_lines(step_seconds=[8.0, 2.0, 4.0, 1.0], samples=8))
    # rates 1, 4, 2, 8: without 1 and 8, (4 + 2) / 2
    assert rate_by("milabench", table) == pytest.approx(3.0)


def test_steps_within_one_tick_of_the_clock_have_no_rate() -> None:
    table = table_of(log_lines(step_seconds=[0.0] * 95))
    keys = ("hf_trainer", "sky_callback", "llm_foundry", "torchtitan", "llmb")
    assert {rate_by(key, table) for key in keys} == {None}
