"""Other tools' definitions of samples per second, computed from the step log; the report shows them next to ours.

Each one keeps its author's window and aggregation, so that a published figure can be compared with the same definition.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from traindyno.core.step_log.step_table import StepTable

SMP_WARMUP_STEPS = 30
COMPOSER_WINDOW_STEPS = 10
LLM_FOUNDRY_STEPS = 30
TORCHTITAN_LOG_STEPS = 10
TORCHTITAN_READ_AT_STEP = 90
LEAST_SECONDS = 1e-6  # a step shorter than a clock tick has a duration of 0
LLMB_FIRST_ITERATION, LLMB_LAST_ITERATION = 35, 44


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """``compute`` takes the table and the number of warm-up steps; None if the run is too short for it."""

    key: str
    name: str
    source: str
    formula: str
    compute: Callable[[StepTable, int], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinedRate:
    """The result of one definition for one run, in samples per second of the whole cell."""

    key: str
    samples_per_second: float | None


def _rate(samples: float, seconds: float) -> float | None:
    """None if no time passed: the steps are shorter than a clock tick."""
    return samples / seconds if seconds > 0 else None


def hf_trainer(table: StepTable, _warmup_steps: int) -> float | None:
    begin = min(rank.steps[0].begin for rank in table.ranks)
    end = max(rank.steps[-1].end for rank in table.ranks)
    return _rate(sum(table.samples), end - begin)


def step_rates(table: StepTable) -> list[float]:
    pairs = zip(table.samples, table.slowest_seconds, strict=True)
    return [samples / max(seconds, LEAST_SECONDS) for samples, seconds in pairs]


def smp_median(table: StepTable, _warmup_steps: int) -> float:
    return median(step_rates(table))


def smp_running_mean(table: StepTable, _warmup_steps: int) -> float | None:
    rates = step_rates(table)[SMP_WARMUP_STEPS:]
    return fmean(rates) if rates else None


def sky_callback(table: StepTable, _warmup_steps: int) -> float | None:
    """Rank 0's begins only, so the last step's own length never counts; the first step is its warm-up."""
    begins = table.ranks[0].steps.begins[1:]
    if len(begins) < 2:
        return None
    return _rate(fmean(table.samples[1:]) * (len(begins) - 1), begins[-1] - begins[0])


def optimum_benchmark(table: StepTable, warmup_steps: int) -> float | None:
    """Rank 0's whole volume over the mean latency of one step, fetching left out: too high by the number of steps."""
    steps = table.ranks[0].steps[warmup_steps:]
    times = zip(steps.begins, steps.ends, steps.waits, strict=True)
    latencies = [end - begin - wait for begin, end, wait in times]
    if not latencies or fmean(latencies) <= 0:
        return None
    return sum(steps.samples) / fmean(latencies)


def llm_foundry(table: StepTable, _warmup_steps: int) -> float | None:
    return _window_rate(table, LLM_FOUNDRY_STEPS - COMPOSER_WINDOW_STEPS, LLM_FOUNDRY_STEPS)


def torchtitan(table: StepTable, _warmup_steps: int) -> float | None:
    return _window_rate(table, TORCHTITAN_READ_AT_STEP - TORCHTITAN_LOG_STEPS, TORCHTITAN_READ_AT_STEP)


def llmb(table: StepTable, _warmup_steps: int) -> float | None:
    first, last = LLMB_FIRST_ITERATION - 1, LLMB_LAST_ITERATION
    if len(table) < last:
        return None
    return _rate(fmean(table.samples[first:last]), fmean(table.slowest_seconds[first:last]))


def superbench(table: StepTable, warmup_steps: int) -> float | None:
    rates = step_rates(table)[warmup_steps:]
    return fmean(rates) if rates else None


def milabench(table: StepTable, _warmup_steps: int) -> float | None:
    rates = sorted(step_rates(table))[1:-1]
    return fmean(rates) if rates else None


def _window_rate(table: StepTable, first: int, end: int) -> float | None:
    """Samples of steps [first, end) ÷ wall time from the end of the step before them, on rank 0."""
    if len(table) < end or first < 1:
        return None
    steps = table.ranks[0].steps
    return _rate(sum(table.samples[first:end]), steps[end - 1].end - steps[first - 1].end)


DEFINITIONS: Sequence[Definition] = (
    Definition(
        key="hf_trainer",
        name="HF Trainer",
        source="Hugging Face Trainer, train_samples_per_second",
        formula="all samples ÷ whole training loop, first step and compilation included",
        compute=hf_trainer,
    ),
    Definition(
        key="smp_median",
        name="SMP, final",
        source="SageMaker model parallel example, final metric",
        formula="median of the per-step rates of all steps",
        compute=smp_median,
    ),
    Definition(
        key="smp_running_mean",
        name="SMP, logged",
        source="SageMaker model parallel example, logged metric",
        formula="mean of the per-step rates after 30 steps",
        compute=smp_running_mean,
    ),
    Definition(
        key="sky_callback",
        name="SkyCallback",
        source="SkyPilot SkyCallback",
        formula="(steps − 1) ÷ time from begin to begin, after one warm-up step",
        compute=sky_callback,
    ),
    Definition(
        key="optimum_benchmark",
        name="optimum-benchmark",
        source="optimum-benchmark, training throughput",
        formula="one rank's whole volume ÷ mean latency of one step (too high by the number of steps; ranks not added)",
        compute=optimum_benchmark,
    ),
    Definition(
        key="llm_foundry",
        name="llm-foundry",
        source="MosaicML llm-foundry benchmarking",
        formula="rolling window of 10 batches, read after batch 30",
        compute=llm_foundry,
    ),
    Definition(
        key="torchtitan",
        name="torchtitan",
        source="PyTorch torchtitan benchmarks",
        formula="the value logged at step 90: steps 81 to 90",
        compute=torchtitan,
    ),
    Definition(
        key="llmb",
        name="dgxc",
        source="NVIDIA dgxc-benchmarking",
        formula="samples per step ÷ mean seconds of iterations 35 to 44",
        compute=llmb,
    ),
    Definition(
        key="superbench",
        name="SuperBench",
        source="Microsoft SuperBench",
        formula="mean of the per-step rates on slowest-rank times, after warm-up",
        compute=superbench,
    ),
    Definition(
        key="milabench",
        name="milabench",
        source="Mila milabench",
        formula="mean of the per-step rates without the least and the greatest",
        compute=milabench,
    ),
)


def compute_definitions(table: StepTable, *, warmup_steps: int) -> tuple[DefinedRate, ...]:
    """Every definition on one run. MLPerf's is missing: it has no throughput, only time to a quality target."""
    return tuple(
        DefinedRate(
            key=definition.key,
            samples_per_second=definition.compute(table, warmup_steps) if len(table) else None,
        )
        for definition in DEFINITIONS
    )
