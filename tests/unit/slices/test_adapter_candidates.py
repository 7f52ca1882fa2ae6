"""Which cells `init --adapter` proposes: LoRA on bf16 where that fits, 4 bits where only they
do.
"""

from dataclasses import replace

import pytest

from tests.unit.planned_suites import prices_of
from traindyno.core.planning.memory import MemoryFinding
from traindyno.core.planning.model_shape import ModelShape
from traindyno.core.planning.peak_lines import MemoryEstimate
from traindyno.core.run.processes import world_size
from traindyno.core.run.settings import Adapter, Settings
from traindyno.core.suite.choices import BaseWeights, Precision, Strategy
from traindyno.slices.estimates.candidates import (
    EstimatedWork,
    estimate_candidate,
    find_candidates,
)

SHAPE = ModelShape(
    parameters=8_000_000_000,
    flops_per_token=4.8e10,
    layers=32,
    hidden_size=4096,
    sequence_length=2048,
)
BYTES = {BaseWeights.FP32: 4.0, BaseWeights.BF16: 2.0, BaseWeights.NF4: 0.6}


def memory(settings: Settings) -> MemoryFinding:
    """The frozen weights, and 1.2 GB for each sample."""
    parts = (world_size(settings) or 1) if settings.strategy is Strategy.FSDP else 1
    held = 8e9 * BYTES[settings.base_weights] / parts + 1.2e9 * settings.batch_size
    return MemoryFinding(
        estimate=MemoryEstimate(peak_bytes=int(held), parameter_bytes=0, optimizer_bytes=0)
    )


def test_weights_of_4_bits_are_proposed_if_no_wider_ones_fit() -> None:
    names = ["ml.g5.2xlarge", "ml.g5.12xlarge", "ml.p4d.24xlarge"]
    work = EstimatedWork(
        shape=SHAPE,
        examples=20_000,
        prices=prices_of(dict.fromkeys(names, "1")),
        memory=memory,
        adapter=Adapter(rank=16, learning_rate=2e-4),
    )
    candidates = {
        candidate.settings.instance: candidate for candidate in find_candidates(work, names, [1])
    }
    chosen = {
        name: (candidate.settings.strategy, candidate.settings.base_weights)
        for name, candidate in candidates.items()
    }
    assert chosen == {
        "ml.g5.2xlarge": (Strategy.SINGLE, BaseWeights.NF4),
        "ml.g5.12xlarge": (Strategy.FSDP, BaseWeights.BF16),
        "ml.p4d.24xlarge": (Strategy.DDP, BaseWeights.BF16),
    }
    assert {candidate.settings.adapter for candidate in candidates.values()} == {work.adapter}
    known = [candidate.seconds.mean for candidate in candidates.values() if candidate.seconds]
    assert len(known) == len(names)


def test_without_known_memory_weights_of_4_bits_are_no_first_choice() -> None:
    names = ["ml.g5.12xlarge"]
    work = EstimatedWork(
        shape=SHAPE,
        examples=20_000,
        prices=prices_of(dict.fromkeys(names, "1")),
        adapter=Adapter(rank=16),
    )
    candidates = find_candidates(work, names, [1])
    assert {candidate.settings.base_weights for candidate in candidates} == {BaseWeights.BF16}


def test_recomputing_takes_a_forward_pass_with_an_adapter_as_without() -> None:
    work = EstimatedWork(shape=SHAPE, examples=100, prices=prices_of({"ml.g5.2xlarge": "1"}))
    base = Settings(instance="ml.g5.2xlarge", strategy=Strategy.SINGLE, precision=Precision.BF16)

    def forward_pass(adapter: Adapter | None) -> float:
        candidates = [
            estimate_candidate(
                work, replace(base, adapter=adapter, activation_checkpointing=recomputes)
            )
            for recomputes in (False, True)
        ]
        first, second = (candidate.seconds.mean for candidate in candidates if candidate.seconds)
        return second - first

    assert forward_pass(Adapter(rank=16)) == pytest.approx(forward_pass(None))
