"""Cells that are worth measuring: they fit into memory, and the best by estimated cost or time come
first.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf

from traindyno.core.costs.prices import SECONDS_PER_HOUR, PriceList
from traindyno.core.instances.instance_types import find_instance_type, instance_types
from traindyno.core.planning.memory import MemoryFinding, usable_memory_bytes
from traindyno.core.planning.model_shape import ModelShape
from traindyno.core.run.processes import accumulation_steps, world_size
from traindyno.core.run.settings import Adapter, Settings
from traindyno.core.suite.choices import BaseWeights, Precision, Strategy
from traindyno.slices.estimates.step_time import (
    Division,
    device_of,
    estimate_step,
    fitted,
)
from traindyno.slices.estimates.suite import Estimated

SHARDS_ALL = {Strategy.FSDP}
SHARDS_STATE = {Strategy.FSDP, Strategy.ZERO1}
LARGEST_BATCH = 64
FROZEN_BYTES = {BaseWeights.FP32: 4.0, BaseWeights.BF16: 2.0, BaseWeights.NF4: 0.6}
# Forward pass and gradients of activations, of three equal parts; the same beside a second forward
# pass, of four; and what an adapter has of a model's parameters, by order of magnitude.
FROZEN_FLOPS = 2 / 3
FROZEN_AND_RECOMPUTED_FLOPS = 3 / 4
ADAPTER_SHARE = 0.01
USUAL_BATCH = 8  # the default of transformers' Trainer
NO_BASIS = "no basis"
NO_ROW = "no row of this device, scaled by its peak"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A cell and its estimates; None is unknown.

    ``seconds`` and ``usd`` are of training on all examples, without the start of a job.
    ``memory_bytes`` and ``device_bytes`` are of one device.
    """

    settings: Settings
    memory_bytes: Estimated | None
    device_bytes: int | None
    samples_per_second: Estimated | None
    seconds: Estimated | None
    usd: Estimated | None
    evidence: str

    @property
    def fits(self) -> bool | None:
        """Whether the upper end of the interval of memory fits; None if it is unknown."""
        if self.memory_bytes is None or self.device_bytes is None:
            return None
        return self.memory_bytes.high <= self.device_bytes


def unknown_memory(_settings: Settings) -> MemoryFinding:
    return MemoryFinding(why_unknown=NO_BASIS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimatedWork:
    """What estimates are computed from.

    ``shape`` is the model's, or None; ``examples`` are all examples of the training; ``memory``
    estimates the memory of a configuration; ``adapter`` is the only part that each cell trains, if
    there is one.
    """

    shape: ModelShape | None = None
    examples: int
    prices: PriceList
    memory: Callable[[Settings], MemoryFinding] = unknown_memory
    adapter: Adapter | None = None


def estimate_candidate(work: EstimatedWork, settings: Settings) -> Candidate:
    shape = work.shape
    instance_type = find_instance_type(settings.instance)
    processes = world_size(settings)
    usable = usable_memory_bytes(settings.instance)
    device = device_of(instance_type.accelerator) if instance_type else None
    unknown = Candidate(
        settings=settings,
        memory_bytes=None,
        device_bytes=usable,
        samples_per_second=None,
        seconds=None,
        usd=None,
        evidence=NO_BASIS,
    )
    if shape is None or processes is None or instance_type is None:
        return unknown
    memory = _memory_of(work, settings)
    if device is None:
        return replace(unknown, memory_bytes=memory)
    network = fitted()["network_bytes_per_second"].get(instance_type.family, 0)
    if settings.instance_count > 1 and not network:
        return replace(unknown, memory_bytes=memory)
    division = Division(
        batch=settings.batch_size,
        passes=accumulation_steps(settings, processes),
        replicas=processes,
        shards_parameters=settings.strategy in SHARDS_ALL,
        shards_optimizer=settings.strategy in SHARDS_STATE,
        recomputes=settings.activation_checkpointing,
        is_half=settings.precision is not Precision.FP32,
        neighbours=instance_type.devices_per_instance,
        network=network or device.link,
    )
    step = estimate_step(_trained(shape, settings), division, device)
    seconds = step.scaled(work.examples / division.samples)
    price = work.prices.get(settings.instance)
    hourly = None if price is None else float(price.usd_per_hour) * settings.instance_count
    return Candidate(
        settings=settings,
        memory_bytes=memory,
        device_bytes=usable,
        samples_per_second=Estimated(
            mean=division.samples / step.mean,
            low=division.samples / step.high,
            high=division.samples / step.low,
        ),
        seconds=seconds,
        usd=None if hourly is None else seconds.scaled(hourly / SECONDS_PER_HOUR),
        evidence=f"{device.rows} published rows of this device" if device.rows else NO_ROW,
    )


def _trained(shape: ModelShape, settings: Settings) -> ModelShape:
    """The model as one step trains it: beside an adapter, frozen weights need no gradients.

    Frozen weights that are whole on each device are neither exchanged nor updated.
    """
    if settings.adapter is None:
        return shape
    is_sharded = settings.strategy in SHARDS_ALL
    recomputes = settings.activation_checkpointing
    return replace(
        shape,
        flops_per_token=shape.flops_per_token
        * (FROZEN_AND_RECOMPUTED_FLOPS if recomputes else FROZEN_FLOPS),
        parameters=shape.parameters if is_sharded else round(shape.parameters * ADAPTER_SHARE),
    )


def _memory_of(work: EstimatedWork, settings: Settings) -> Estimated | None:
    """Estimated memory. fp16 needs as much as bf16, but for the scaler of the loss."""
    is_half = settings.precision is not Precision.FP32
    asked = replace(settings, precision=Precision.BF16) if is_half else settings
    estimate = work.memory(asked).estimate
    if estimate is None:
        return None
    peak = float(estimate.peak_bytes)
    return Estimated(mean=peak, low=peak, high=peak * fitted()["memory"]["high"])


def find_candidates(
    work: EstimatedWork, types: Iterable[str], counts: Sequence[int]
) -> list[Candidate]:
    """The largest batch that fits, for each type, count and strategy, as estimated; none where no
    batch does.
    """
    # A strategy that shards more costs time.
    candidates = (
        _first_that_fits(work, _strategies(name, count, work.adapter))
        for name in types
        for count in counts
    )
    return [candidate for candidate in candidates if candidate is not None]


def _first_that_fits(work: EstimatedWork, strategies: Iterable[Settings]) -> Candidate | None:
    """The first strategy with a batch that fits.

    Where none fits, the last one whose memory is not estimated; weights of 4 bits only where
    nothing else may fit.
    """
    unknown = None
    for settings in strategies:
        if not _can_fit(work, settings):
            continue
        candidate = _largest(work, settings)
        if candidate is not None and candidate.fits:
            return candidate
        is_last_resort = settings.base_weights is BaseWeights.NF4
        if candidate is not None and (unknown is None or not is_last_resort):
            unknown = candidate
    return unknown


def _can_fit(work: EstimatedWork, settings: Settings) -> bool:
    """Whether the device has the memory for parameters and gradients in fp32 and the two states of
    AdamW, or for the frozen weights: without that, no step has to be estimated.
    """
    usable = usable_memory_bytes(settings.instance)
    processes = world_size(settings)
    if work.shape is None or usable is None or processes is None:
        return True
    parts = processes if settings.strategy in SHARDS_ALL else 1
    state_parts = processes if settings.strategy in SHARDS_STATE else 1
    bytes_each = 8 / parts + 8 / state_parts
    if settings.adapter is not None:
        bytes_each = FROZEN_BYTES[settings.base_weights] / parts
    upper_end: float = fitted()["memory"]["high"]
    return upper_end * work.shape.parameters * bytes_each <= usable


def _strategies(name: str, count: int, adapter: Adapter | None) -> Iterator[Settings]:
    """Settings in order, from the strategy that communicates and computes least to the one that
    needs the least memory.

    Weights of 4 bits come last: they are for models that fit in no other way.
    """
    instance_type = instance_types()[name]
    precision = Precision.BF16 if instance_type.device.has_bf16 else Precision.FP16
    base = Settings(instance=name, instance_count=count, precision=precision)
    if (world_size(base) or 1) == 1:
        strategies: tuple[Strategy, ...] = (Strategy.SINGLE,)
    elif adapter is None:
        strategies = (Strategy.DDP, Strategy.ZERO1, Strategy.FSDP)
    else:  # the optimizer's state of an adapter is small
        strategies = (Strategy.DDP, Strategy.FSDP)
    if adapter is not None:
        has_bf16 = precision is Precision.BF16
        held_as = BaseWeights.BF16 if has_bf16 else BaseWeights.FP32
        base = replace(base, adapter=adapter, base_weights=held_as)
    for recomputes in (False, True):
        for strategy in strategies:
            yield replace(base, strategy=strategy, activation_checkpointing=recomputes)
    if adapter is not None:
        yield replace(
            base,
            strategy=strategies[0],
            activation_checkpointing=True,
            base_weights=BaseWeights.NF4,
        )


def _largest(work: EstimatedWork, base: Settings, batch: int = LARGEST_BATCH) -> Candidate | None:
    """The candidate with the largest batch that fits, of ``batch`` and its halves; with a batch of
    1 where the memory is not estimated.
    """
    candidate = None
    while batch:
        candidate = estimate_candidate(work, replace(base, batch_size_per_device=batch))
        if candidate.fits:
            return candidate
        batch = batch // 2 if candidate.memory_bytes is not None else min(1, batch - 1)
    return candidate if candidate is not None and candidate.memory_bytes is None else None


def usual_candidate(work: EstimatedWork, best: Settings) -> Candidate | None:
    """The configuration that people would use on such an instance: the defaults of a trainer in
    bf16, on one instance if that fits.
    """
    most = min(USUAL_BATCH, best.batch_size)
    for base in (*_strategies(best.instance, 1, work.adapter), best):
        candidate = _largest(work, base, most) if _can_fit(work, base) else None
        if candidate is not None and candidate.fits:
            return candidate
    return None


def choose(candidates: Iterable[Candidate], *, is_time: bool, most: int) -> list[Candidate]:
    """The best candidates by the goal, one for each kind and number of devices, and for each
    adapter, since an estimate can't tell others apart.
    """

    def figure(candidate: Candidate) -> float:
        estimate = candidate.seconds if is_time else candidate.usd
        return inf if estimate is None else estimate.mean

    kept: dict[tuple[str | None, int | None, Adapter | None], Candidate] = {}
    listed = list(candidates)
    estimated = [candidate for candidate in listed if figure(candidate) < inf]
    for candidate in sorted(estimated or listed, key=figure):
        settings = candidate.settings
        instance_type = find_instance_type(settings.instance)
        device = instance_type.accelerator if instance_type else None
        kept.setdefault((device, world_size(settings), settings.adapter), candidate)
    return list(kept.values())[:most]
