"""The memory of every batch from two runs: lines in the batch against the steps of the batch."""

import gc
from collections.abc import Iterator
from random import Random

import pytest

from tests.nightly import NIGHTLY
from tests.training.family_strategies import TRAINED
from tests.training.strategy_cases import WORKLOADS
from tests.training.test_memory import FOUR, lines_of, settings_of, workload_of
from training.memory import tracker
from training.memory.estimate import estimate_memory

pytestmark = pytest.mark.usefixtures("of_one_thread")

# Longformer has no estimate: it divides lengths as tensors, and a fake one has no value.
CASES = [
    (name, strategy, recomputes)
    for name in TRAINED
    if name != "masked-lm/longformer"
    for strategy in ("single", "ddp", "zero1", "fsdp")
    for recomputes in (False, True)
]
# Attention in linear time is estimated on a slow reference.
QUICK = [case for case in CASES if case[0] not in ("causal-lm/qwen3_next", "causal-lm/mamba2")]
MOST_BATCH = 24
TOKENS = 60


@pytest.fixture
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


@pytest.mark.usefixtures("thresholds")
def test_pythons_collections_change_no_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    """ESM's rotary embedding leaves a cycle with 512 bytes, which Python frees when it has made as
    many objects as a threshold says.
    """
    monkeypatch.setattr(tracker, "BLOCK_BYTES", 1)
    task, config = WORKLOADS["masked-lm/esm"]
    workload = workload_of(dict(config), task, sequence_length=TOKENS)
    peaks = set()
    for threshold in (3_000, 8_000, 10_000, 100_000):
        gc.set_threshold(threshold, 1, 1)
        lines = lines_of(workload, settings_of(instance=FOUR, strategy="single"))
        peaks.add(lines.at(4).peak_bytes)
    assert len(peaks) == 1


@pytest.mark.parametrize(
    ("name", "strategy", "recomputes"), CASES if NIGHTLY else Random(3).sample(QUICK, 12)
)
def test_the_lines_of_two_batches_are_within_half_a_percent_of_the_steps_of_another(
    name: str, strategy: str, recomputes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bytes are counted, not blocks: 512 bytes are a part of the peak of so small a model."""
    monkeypatch.setattr(tracker, "BLOCK_BYTES", 1)
    dice = Random(f"{name} {strategy} {recomputes}")
    task, config = WORKLOADS[name]
    workload = workload_of(dict(config), task, sequence_length=TOKENS)
    values = {
        "instance": FOUR,
        "strategy": strategy,
        "activation_checkpointing": recomputes,
        "precision": dice.choice(["fp32", "bf16"]),
        "gradient_accumulation_steps": dice.choice([1, 2]),
    }
    batch = dice.randint(4, MOST_BATCH)
    whole = estimate_memory(workload, settings_of(**values, batch_size_per_device=batch))
    lines = lines_of(workload, settings_of(**values))
    assert lines.at(batch).peak_bytes == pytest.approx(whole.peak_bytes, rel=0.005)
