import pytest

from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.measurement.throughput import (
    Throughput,
    measure_table,
    measure_throughput,
    summarize_step_times,
)
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


def test_all_ranks_work_over_the_slowest_ranks_window() -> None:
    table = table_of(
        log_lines(rank=0, world_size=2, step_seconds=[9.0, 1.0, 1.0], samples=8, tokens=80),
        log_lines(rank=1, world_size=2, step_seconds=[9.0, 1.5, 1.0], samples=8, tokens=80),
    )
    throughput = measure(table, warmup_steps=1)
    # 2 ranks x 2 steps x 8 = 32 samples; rank 1 took 1.5 + 1.0 = 2.5 s: 12.8 /s
    assert throughput.seconds == pytest.approx(2.5)
    assert throughput.samples == 32
    assert throughput.samples_per_second == pytest.approx(12.8)
    # 320 tokens in 2.5 s
    assert throughput.tokens_per_second == pytest.approx(128.0)
    assert throughput.steps == 2
    assert throughput.steps_per_second == pytest.approx(0.8)
    assert throughput.step_times.mean_seconds == pytest.approx(1.25)
    assert throughput.recurring_share == pytest.approx(0)


def test_waiting_for_data_counts_and_is_named() -> None:
    throughput = measure(table_of(log_lines(step_seconds=[1.0] * 4, wait_seconds=0.25, samples=8)))
    # 32 samples in 4 s, of which 1 s was waiting
    assert throughput.samples_per_second == pytest.approx(8.0)
    assert throughput.data_wait_share == pytest.approx(0.25)


@pytest.mark.parametrize(("name", "seconds"), [("evaluate", 14.0), ("load", 4.0)])
def test_a_phase_between_steps_counts_as_it_was_seen_unless_it_happens_once(
    name: str, seconds: float
) -> None:
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


def test_unexplained_time_between_steps_counts() -> None:
    lines = (
        log_lines(step_seconds=[1.0], is_ended=False)
        + log_lines(step_seconds=[1.0], first_step=1, start=START + 3)[1:]
    )
    # from START to START + 4
    assert measure(table_of(lines)).seconds == pytest.approx(4.0)


def test_model_flops_utilization_by_hand() -> None:
    table = table_of(log_lines(step_seconds=[0.5] * 4, tokens=1000))
    throughput = measure(table, flops_per_token=6e9, peak_flops_per_device=100e12)
    # 2000 tokens/s x 6 GFLOPs = 12 TFLOPS of 100
    assert throughput.model_flops_utilization == pytest.approx(0.12)


@pytest.mark.parametrize("micro_batch_waits", [0.0, 0.25])
def test_utilization_of_a_mesh_is_of_all_its_devices(micro_batch_waits: float) -> None:
    """Pipeline 2 x shard 2 x tensor 2: two replicas of four processes, which log a quarter of their
    tokens each.
    """
    of_replica = 4000
    seconds = 0.5 + micro_batch_waits
    table = table_of(
        *(
            log_lines(rank=rank, world_size=8, step_seconds=[seconds] * 4, tokens=of_replica // 4)
            for rank in range(8)
        )
    )
    throughput = measure(table, flops_per_token=6e9, peak_flops_per_device=100e12)
    # 2 replicas x 4,000 tokens x 6 GFLOPs of the whole model / 8 devices: 6 TFLOPs of each in a
    # step
    assert throughput.model_flops_utilization == pytest.approx(0.06 / seconds)


def test_an_unknown_peak_leaves_utilization_unknown() -> None:
    table = table_of(log_lines(step_seconds=[0.5] * 4, tokens=1000))
    assert measure(table, flops_per_token=6e9).model_flops_utilization is None


def test_tokens_not_counted_in_a_step_are_unknown() -> None:
    assert measure(table_of(log_lines(step_seconds=[1.0], tokens=None))).tokens_per_second is None


def test_no_steps_after_warm_up_is_no_throughput() -> None:
    table = table_of(log_lines(step_seconds=[1.0]))
    step_time = measure_table(table, warmup_steps=1)
    throughput = measure_throughput(
        table, step_time, device_count=1, flops_per_token=None, peak_flops_per_device=None
    )
    assert throughput is None


def test_percentiles_lie_between_neighbours() -> None:
    summary = summarize_step_times([9.0, 1.0, 2.0, 3.0])
    # position 0.99 x 3 = 2.97: 3 + 0.97 x (9 - 3)
    assert (summary.mean_seconds, summary.p50_seconds, summary.p99_seconds) == pytest.approx(
        (3.75, 2.5, 8.82)
    )
    assert summarize_step_times([4.0]).p99_seconds == 4.0
