"""The memory of every batch from two runs: lines in the batch against the steps of the batch."""

from random import Random

import pytest

from tests.nightly import NIGHTLY
from tests.training.family_strategies import TRAINED
from tests.training.strategy_cases import WORKLOADS
from tests.training.test_memory import FOUR, settings_of, workload_of
from traindyno.core.errors import TraindynoError
from training.memory import tracker
from training.memory.estimate import estimate_lines, estimate_memory
from training.models.flops import NOT_COUNTED

pytestmark = pytest.mark.usefixtures("of_one_thread")

CASES = [
    (name, strategy, recomputes)
    for name in TRAINED
    for strategy in ("single", "ddp", "zero1", "fsdp")
    for recomputes in (False, True)
]
# Attention in linear time is estimated on a slow reference.
QUICK = [case for case in CASES if case[0] not in ("causal-lm/qwen3_next", "causal-lm/mamba2")]
MOST_BATCH, TOKENS = 24, 64


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
    try:
        whole = estimate_memory(workload, settings_of(**values, batch_size_per_device=batch))
    except (TraindynoError, *NOT_COUNTED) as error:
        pytest.skip(f"no estimate: {error}")
    lines = estimate_lines(workload, settings_of(**values))
    if lines is not None:
        assert lines.at(batch).peak_bytes == pytest.approx(whole.peak_bytes, rel=0.005)
