"""Generated response surfaces: a seeded model of training with bottlenecks, interactions, plateaus and memory limits.

``python -m tests.simulations.surface_generator`` writes those of tests/data/surfaces. The model is not the one that the
search fits: times are sums and maxima of parts, not products of factors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from math import exp, log2
from random import Random
from typing import Any

from tests.simulations.response_surface import FOLDER, Surface, SurfaceCell, render, surface_document
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.choices import GoalKind

EXAMPLES = 1_000_000
TRIAL_STEPS = 200
INSTANCES = {"ml.g5.12xlarge": Decimal("7.09"), "ml.p4d.24xlarge": Decimal("25.25"), "ml.p5.48xlarge": Decimal("63.30")}
LEVELS: Mapping[str, Sequence[Any]] = {
    "instance": tuple(INSTANCES),
    "instance_count": (1, 2, 4, 8, 16),
    "strategy": ("ddp", "fsdp", "zero1"),
    "batch_size_per_device": (4, 8, 16, 32, 64),
    "precision": ("fp32", "bf16"),
    "compiler": ("none", "inductor"),
    "loader_workers": (0, 2, 4, 8, 12),
    "activation_checkpointing": (False, True),
    "gradient_accumulation_steps": (1, 2, 4),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One instance type, drawn for each surface: seconds of compute per sample, of communication per exchange, of
    loading per sample and worker, and how many samples the memory of a device holds without checkpointing."""

    compute: float
    exchange: float
    loading: float
    memory: float


def main() -> None:
    for seed, axes in enumerate(COMMITTED, start=1):
        surface = generate_surface(seed, axes)
        path = FOLDER / f"{surface.name}.json"
        path.write_text(render(surface_document(surface)), encoding="utf-8")


def generate_surface(seed: int, axes: Sequence[str], *, family: str = "generated") -> Surface:
    """``axes``: those of LEVELS that vary; at most five levels of each."""
    source = Random(f"{family} {seed}")
    machines = {name: _draw_machine(source) for name in INSTANCES}
    factors = {
        "precision": source.uniform(0.35, 0.9),
        "compiler": source.uniform(0.7, 1.1),
        "checkpointing": source.uniform(1.2, 1.4),
        "half_batch": source.uniform(1, 12),
        "overlap": source.uniform(0.2, 0.9),
        "shard_exchange": source.uniform(1.2, 2.5),
        "overhead": source.uniform(60, 300),
        "variation": source.uniform(0.005, 0.025),
    }
    varying = {name: LEVELS[name] for name in axes}
    fixed = {"instance": source.choice(list(INSTANCES)), "strategy": "ddp", "loader_workers": 4, "precision": "bf16"}
    training = {name: value for name, value in fixed.items() if name not in varying}
    goal = source.choice([GoalKind.FASTEST, GoalKind.CHEAPEST])
    points = [dict(zip(varying, values, strict=True)) for values in product(*varying.values())]
    return Surface(
        name=f"{family}-{seed:02d}",
        origin="generated",
        source=f"python -m tests.simulations.surface_generator, seed {seed}",
        goal=goal,
        training=training,
        usd_per_hour=INSTANCES,
        cells=tuple(_cell({**training, **point}, point, machines, factors, seed) for point in points),
    )


def _draw_machine(source: Random) -> Machine:
    return Machine(
        compute=exp(source.gauss(-5, 0.7)),
        exchange=exp(source.gauss(-3.5, 0.8)),
        loading=exp(source.gauss(-4.5, 1.0)),
        memory=exp(source.gauss(3.4, 0.7)),
    )


def _cell(
    settings: Mapping[str, Any],
    point: Mapping[str, Any],
    machines: Mapping[str, Machine],
    factors: Mapping[str, float],
    seed: int,
) -> SurfaceCell:
    machine = machines[settings["instance"]]
    batch, nodes = settings.get("batch_size_per_device", 16), settings.get("instance_count", 2)
    accumulated = settings.get("gradient_accumulation_steps", 1)
    is_checkpointed = settings.get("activation_checkpointing", False)
    if batch > machine.memory * _memory_factor(settings, nodes, is_checkpointed):
        return SurfaceCell(
            settings=point,
            seconds=None,
            billable_seconds=round(factors["overhead"] * 1.1, 1),
            outcome=Outcome.OUT_OF_MEMORY,
        )
    compute = machine.compute * (batch + factors["half_batch"])
    compute *= factors["precision"] if settings.get("precision") == "bf16" else 1.0
    compute *= factors["compiler"] if settings.get("compiler") == "inductor" else 1.0
    compute *= factors["checkpointing"] if is_checkpointed else 1.0
    exchange = machine.exchange * log2(2 * nodes) * (factors["shard_exchange"] if settings["strategy"] != "ddp" else 1)
    loading = machine.loading * batch / max(0.6, settings["loader_workers"])
    micro_step = max(compute, loading) if settings["loader_workers"] else compute + loading
    step = micro_step * accumulated + max(0.1 * exchange, exchange - factors["overlap"] * compute)
    # A few per cent that no axis explains alone.
    step *= exp(Random(f"{seed} {sorted(point.items(), key=str)}").gauss(0, 0.01))
    rate = 8 * nodes * batch * accumulated / step
    compilation = 90.0 if settings.get("compiler") == "inductor" else 0.0
    return SurfaceCell(
        settings=point,
        seconds=round(EXAMPLES / rate, 4),
        billable_seconds=round(factors["overhead"] + compilation + TRIAL_STEPS * step, 1),
        variation=round(factors["variation"], 4),
    )


def _memory_factor(settings: Mapping[str, Any], nodes: int, is_checkpointed: bool) -> float:
    sharded = {"ddp": 1.0, "zero1": 1.3, "fsdp": 1.0 + 0.3 * log2(2 * nodes)}[settings["strategy"]]
    return sharded * (3.0 if is_checkpointed else 1.0) * (1.6 if settings.get("precision") == "bf16" else 1.0)


COMMITTED: tuple[tuple[str, ...], ...] = (
    ("strategy", "batch_size_per_device", "precision"),
    ("instance_count", "loader_workers", "compiler"),
    ("instance", "instance_count", "strategy"),
    ("batch_size_per_device", "activation_checkpointing", "strategy", "precision"),
    ("instance_count", "batch_size_per_device", "loader_workers"),
    ("instance", "batch_size_per_device", "precision", "compiler"),
    ("instance_count", "strategy", "batch_size_per_device", "activation_checkpointing"),
    ("instance", "instance_count", "strategy", "batch_size_per_device"),
)


def surfaces() -> Iterator[Surface]:
    for seed, axes in enumerate(COMMITTED, start=1):
        yield generate_surface(seed, axes)


if __name__ == "__main__":
    main()
