"""How long a step takes, before one was measured: a sum of what it computes, moves and waits for,
with fitted weights.

Each term is the least time that a device of this kind needs for one part of the step, by its data
sheet. The weights say how many times longer it takes in practice; ``python -m bench estimates``
fits them to published measurements.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from math import exp
from typing import Any

from traindyno.core.instances.devices import devices
from traindyno.core.planning.model_shape import ModelShape
from traindyno.slices.estimates.suite import Estimated

#: z of a 90 % interval
NORMAL_90 = 1.645
#: The parts of a step, in seconds before their weights.
TERMS = (
    "compute",
    "memory",
    "launches",
    "tensor_link",
    "tensor_network",
    "tensor_network_launches",
    "gradients",
    "optimizer",
    "stages",
    "shards",
    "constant",
)
LAUNCH_SECONDS = 1e-4


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpeed:
    """Peaks of one device by its data sheet, in FLOPS and bytes per second.

    ``link`` is to the other devices of its instance, in one direction. ``rows`` counts the
    published measurements of this device to which the weights are fitted.
    """

    half_flops: float
    single_flops: float
    memory: float
    link: float
    rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """How one step is divided.

    ``batch`` counts the sequences of one forward pass of one replica, and ``passes`` its forward
    passes. ``neighbours`` are the devices of one instance. ``network`` is in bytes per second from
    one device to another instance.
    """

    batch: int
    passes: int = 1
    replicas: int = 1
    tensor: int = 1
    pipeline: int = 1
    shards_parameters: bool = False
    shards_optimizer: bool = False
    recomputes: bool = False
    is_half: bool = True
    neighbours: int = 8
    network: float = 25e9

    @property
    def way(self) -> str:
        """The kind of traffic that crosses the network, by which published steps tell how far
        estimates are off.
        """
        if self.tensor * self.pipeline * self.replicas <= self.neighbours:
            return "one instance"
        if self.tensor > self.neighbours:
            return "tensor groups over instances"
        return "pipelines over instances" if self.pipeline > 1 else "replicas over instances"

    @property
    def samples(self) -> int:
        """Sequences of one step."""
        return self.batch * self.passes * self.replicas

    def link_of_replicas(self, device: DeviceSpeed) -> float:
        """Bytes per second between replicas, whose slowest link is that between instances."""
        return device.link if self.way == "one instance" else self.network


def step_terms(shape: ModelShape, division: Division, device: DeviceSpeed) -> tuple[float, ...]:
    """The seconds of each of ``TERMS``."""
    slots = division.passes + division.pipeline - 1
    layers = shape.layers / division.pipeline
    tokens = division.batch * shape.sequence_length
    hidden_bytes = 2 * tokens * shape.hidden_size
    flops = (
        shape.flops_per_token
        * tokens
        * (4 / 3 if division.recomputes else 1)
        / division.pipeline
        / division.tensor
    )
    held = shape.parameters / division.tensor / division.pipeline
    exchanged = slots * layers * hidden_bytes * (division.tensor - 1) / division.tensor
    is_far = division.tensor > division.neighbours
    shared = division.replicas > 1
    between = division.link_of_replicas(device)
    return (
        slots * flops / (device.half_flops if division.is_half else device.single_flops),
        slots * layers * hidden_bytes / division.tensor / device.memory,
        slots * layers * LAUNCH_SECONDS,
        0.0 if is_far else exchanged / device.link,
        exchanged / division.network if is_far else 0.0,
        slots * layers * LAUNCH_SECONDS if is_far else 0.0,
        2 * held / between if shared else 0.0,
        16 * held / device.memory / (division.replicas if division.shards_optimizer else 1),
        slots * hidden_bytes / division.network if division.pipeline > 1 else 0.0,
        6 * division.passes * held / between if division.shards_parameters and shared else 0.0,
        1e-3,
    )


def estimate_step(shape: ModelShape, division: Division, device: DeviceSpeed) -> Estimated:
    """Seconds of one step of all replicas."""
    weights: Mapping[str, float] = fitted()["step_time"]["weights"]
    terms = step_terms(shape, division, device)
    mean = sum(weights[name] * seconds for name, seconds in zip(TERMS, terms, strict=True))
    mean = max(mean, exchange_seconds(shape, division, device))
    factor = exp(NORMAL_90 * deviation_of(shape, division, device))
    return Estimated(mean=mean, low=mean / factor, high=mean * factor)


def deviation_of(shape: ModelShape, division: Division, device: DeviceSpeed) -> float:
    """Deviation of the published steps that are divided in this way.

    For a model that is larger than all of them, it is the widest deviation of all ways.
    """
    figures = fitted()["step_time"]
    ways: Mapping[str, Mapping[str, float]] = figures["ways"]
    way = ways[division.way]
    is_known = shape.parameters <= way["most_parameters"]
    deviation = way["deviation"] if is_known else max(terms["deviation"] for terms in ways.values())
    return deviation if device.rows else max(deviation, figures["deviation_of_other_device"])


def exchange_seconds(shape: ModelShape, division: Division, device: DeviceSpeed) -> float:
    """The least time to average gradients in fp32 in a ring, which no computation can hide.

    Published steps have fast links: their fit finds no such term.
    """
    if division.replicas == 1:
        return 0.0
    held = shape.parameters / division.tensor / division.pipeline
    return (
        8 * held * (division.replicas - 1) / division.replicas / division.link_of_replicas(device)
    )


def device_of(accelerator: str | None) -> DeviceSpeed | None:
    """Data sheet of a device; None if nobody looked it up."""
    known = devices().get(accelerator or "")
    if known is None:
        return None
    half = known.half_flops
    single = known.single_flops
    memory = known.memory_bytes_per_second
    link = known.link_bytes_per_second
    if half is None or single is None or memory is None or link is None:
        return None
    return DeviceSpeed(
        half_flops=half,
        single_flops=single,
        memory=memory,
        link=link,
        rows=fitted()["rows"].get(accelerator, 0),
    )


@cache
def fitted() -> dict[str, Any]:
    """The weights, with their source."""
    text = (
        files("traindyno.slices.estimates.data")
        .joinpath("weights.json")
        .read_text(encoding="utf-8")
    )
    terms: dict[str, Any] = json.loads(text)
    return terms
