"""Which cells `init --adapter` proposes: LoRA on bf16 where that fits, 4 bits where only they
do.
"""

from tests.unit.planned_suites import prices_of
from traindyno.core.planning.memory import MemoryFinding
from traindyno.core.planning.model_shape import ModelShape
from traindyno.core.planning.peak_lines import MemoryEstimate
from traindyno.core.run.processes import world_size
from traindyno.core.run.settings import Adapter, Settings
from traindyno.core.suite.choices import BaseWeights, Strategy
from traindyno.slices.estimates.candidates import EstimatedWork, find_candidates

SHAPE = ModelShape(
    parameters=8_000_000_000,
    flops_per_token=4.8e10,
    layers=32,
    hidden_size=4096,
    intermediate_size=14336,
    vocabulary_size=128256,
    sequence_length=2048,
)
BYTES = {BaseWeights.FP32: 4.0, BaseWeights.BF16: 2.0, BaseWeights.NF4: 0.6}


def memory(settings: Settings) -> MemoryFinding:
    """The frozen weights, and 1.2 GB for each sample."""
    parts = (world_size(settings) or 1) if settings.strategy is Strategy.FSDP else 1
    held = 8e9 * BYTES[settings.base_weights] / parts + 1.2e9 * settings.batch_size
    return MemoryFinding(
        estimate=MemoryEstimate(
            peak_bytes=int(held), parameter_bytes=0, gradient_bytes=0, optimizer_bytes=0
        )
    )


def test_weights_of_4_bits_are_proposed_where_no_wider_ones_fit() -> None:
    names = ["ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"]
    work = EstimatedWork(
        shape=SHAPE,
        examples=20_000,
        prices=prices_of(dict.fromkeys(names, "1")),
        memory=memory,
        adapter=Adapter(rank=16, learning_rate=2e-4),
    )
    found = {each.settings.instance: each for each in find_candidates(work, names, [1])}
    chosen = {
        name: (each.settings.strategy, each.settings.base_weights) for name, each in found.items()
    }
    assert chosen == {
        "ml.g5.2xlarge": (Strategy.SINGLE, BaseWeights.NF4),
        "ml.g5.12xlarge": (Strategy.FSDP, BaseWeights.BF16),
        "ml.p4d.24xlarge": (Strategy.DDP, BaseWeights.BF16),
    }
    assert {each.settings.adapter for each in found.values()} == {work.adapter}
    known = [each.seconds.mean for each in found.values() if each.seconds]
    assert len(known) == len(names)


def test_where_no_memory_is_known_weights_of_4_bits_are_no_first_choice() -> None:
    names = ["ml.g5.12xlarge"]
    work = EstimatedWork(
        shape=SHAPE,
        examples=20_000,
        prices=prices_of(dict.fromkeys(names, "1")),
        adapter=Adapter(rank=16),
    )
    found = find_candidates(work, names, [1])
    assert {each.settings.base_weights for each in found} == {BaseWeights.BF16}
