"""The parts of a step as shares of its time, which sum to 1: what the probes tell, and the rest; in
sentences.

Each probe leaves out what the one before does, and one thing more, so that its true time can't be
longer. Times that rise are noise: they are replaced by their isotonic means, and no part is known
better than the largest rise.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from math import ceil, hypot
from statistics import fmean
from typing import ClassVar

from traindyno.core.costs.quantity_text import joined, share_text
from traindyno.core.documents.stored import StoredPart
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.step_parts import PartSeconds, StepParts, mean_parts
from traindyno.core.run.processes import world_size
from traindyno.core.run.settings import Settings
from traindyno.core.step_log.line import RUN

DATA = "data"
COMMUNICATION = "communication"
OPTIMIZER = "optimizer"
COMPUTE = "compute"
# A smaller part of a step is not named as a reason, and a smaller saving not as advice.
LEAST_NAMED_SHARE = 0.05
NAMES = {DATA: "loading data"}
# A process that waits for others computes in less of the time.
MOSTLY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """Share of a step's time, 0 to 1, with the half width of its 95 % interval."""

    value: float
    half_width: float

    @property
    def is_found(self) -> bool:
        """Whether it is more than noise.

        A part that can't be, such as the communication of one process, is 0 ± 0.
        """
        return self.value > self.half_width


@dataclass(frozen=True, slots=True, kw_only=True)
class StepShares:
    """``parts``: data, communication and optimizer, None if unknown."""

    parts: Mapping[str, Share | None]

    @property
    def found(self) -> dict[str, Share]:
        return {
            name: share
            for name, share in self.parts.items()
            if share is not None and share.is_found
        }

    @property
    def noise(self) -> dict[str, Share]:
        """Parts that can't be told from nothing."""
        known = {name: share for name, share in self.parts.items() if share is not None}
        return {
            name: share
            for name, share in known.items()
            if not share.is_found and share.half_width > 0
        }

    @property
    def rest(self) -> Share:
        """What is left of the step without the parts that are found: compute, and what can't be
        told from it.
        """
        value = max(0.0, 1 - sum(share.value for share in self.found.values()))
        return Share(
            value=value,
            half_width=hypot(*(share.half_width for share in self.parts.values() if share)),
        )


def divide_step(parts: StepParts | None) -> StepShares | None:
    """None if the step was not probed."""
    if parts is None or not parts.is_probed:
        return None
    raw = {DATA: parts.data, COMMUNICATION: parts.communication, OPTIMIZER: parts.optimizer}
    known = {name: part for name, part in raw.items() if part is not None}
    times = [*accumulate((-part.mean for part in known.values()), initial=parts.step.mean)]
    largest_rise = max(0.0, *(after - before for before, after in pairwise(times)))
    falling = [*_falling(times)]
    shares: dict[str, Share | None] = dict.fromkeys(raw)
    for (name, part), (before, after) in zip(known.items(), pairwise(falling), strict=True):
        width = (
            0.0 if part == PartSeconds(mean=0.0, error=0.0) else max(part.half_width, largest_rise)
        )
        shares[name] = Share(value=(before - after) / falling[0], half_width=width / falling[0])
    return StepShares(parts=shares)


def data_share(parts: StepParts | None) -> Share | None:
    """By the probes, or by the log where none was made; None if nothing is known."""
    shares = divide_step(parts)
    if shares is not None:
        return shares.parts[DATA]
    return None if parts is None else wait_share(parts)


def wait_share(parts: StepParts) -> Share:
    """By the log."""
    return Share(
        value=parts.share(parts.waiting), half_width=parts.waiting.half_width / parts.step.mean
    )


def _falling(times: Sequence[float]) -> Iterator[float]:
    """The isotonic regression of the times: the closest ones that never rise, in least squares."""
    for place in range(len(times)):
        ends = range(place, len(times))
        yield min(max(fmean(times[first : end + 1]) for end in ends) for first in range(place + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderAdvice:
    """``saving`` is the share of a step's time that ``loader_workers`` in each process would save,
    by estimate.
    """

    loader_workers: int
    saving: float
    #: Whether more workers would save more, but the instance has no vCPUs for them.
    is_bounded: bool


def advise_workers(settings: Settings, parts: StepParts | None) -> LoaderAdvice | None:
    """None where data takes little time, or the type's vCPUs are unknown or also do the training.

    A process that loads by itself takes the time of the loading for it. Workers that training waits
    for are busy all the time: n of them make the data of n steps in the time of n steps.
    """
    data = data_share(parts)
    found = find_instance_type(settings.instance)
    processes = world_size(settings)
    if parts is None or data is None or not data.is_found or data.value < LEAST_NAMED_SHARE:
        return None
    data_seconds = data.value * parts.step.mean
    workers = settings.loader_workers
    rest = parts.step.mean - data_seconds
    if (
        found is None
        or found.vcpus is None
        or processes is None
        or not found.has_accelerator
        or rest <= 0
    ):
        return None
    # the vCPUs of each process without the one that it needs itself
    most = max(0, found.vcpus // (processes // settings.instance_count) - 1)
    load_seconds = data_seconds if workers == 0 else workers * parts.step.mean
    wanted = max(workers + 1, ceil(load_seconds / rest))
    advised = min(wanted, most)
    if advised <= workers:
        return None
    saving = 1 - max(rest, load_seconds / advised) / parts.step.mean
    if saving < LEAST_NAMED_SHARE:
        return None
    return LoaderAdvice(loader_workers=advised, saving=saving, is_bounded=wanted > most)


@dataclass(frozen=True, slots=True, kw_only=True)
class CellSteps(StoredPart):
    """Means over a cell's measured trials: what its steps consist of, and what would make them
    shorter.
    """

    kind: ClassVar[str] = "steps"
    step_parts: StepParts | None = None
    #: What more loader workers would save, by estimate.
    loader_advice: LoaderAdvice | None = None


def measure_steps(settings: Settings, measured: Sequence[RunResult]) -> CellSteps:
    """Advice is for the built-in training code, which has the setting."""
    parts = mean_parts(each.measured.step_parts for each in measured if each.measured)
    is_built_in = any(RUN in each.environment.facts for each in measured if each.environment)
    return CellSteps(
        step_parts=parts, loader_advice=advise_workers(settings, parts) if is_built_in else None
    )


def describe_steps(label: str, steps: CellSteps) -> Iterator[str]:
    """Nothing where a step was not probed and does not wait for data."""
    parts = steps.step_parts
    advice = steps.loader_advice
    if parts is None:
        return
    shares = divide_step(parts)
    if is_wait_named(parts):
        yield (
            f"{share_of_step_text(wait_share(parts))} of a step of {label} waits for data, by its "
            "step log."
        )
        if parts.computing_share is not None and parts.computing_share >= MOSTLY:
            share = share_text(min(1.0, parts.computing_share), digits=0)
            yield (
                f"In {share} of that wait the process computes: it loads the data itself, or does "
                "other work that is in no step and no phase of its log."
            )
    if shares is not None and (
        not shares.found
        and any(share.half_width > LEAST_NAMED_SHARE for share in shares.noise.values())
    ):
        yield (
            f"The probes of {label} are too noisy to tell what its step consists of (± "
            f"{_widest_text(shares)})."
        )
    elif shares is not None:
        yield f"By its probes, a step of {label} is {_shares_text(shares)}."
        if shares.noise:  # what these parts take is in the rest
            names = joined([*map(name_of, shares.noise)])
            verb = "is" if len(shares.noise) == 1 else "are"
            yield (
                f"{names[0].upper()}{names[1:]} {verb} within the noise of the probes (± "
                f"{_widest_text(shares)})."
            )
    if advice is not None:
        bound = ", which is all that the vCPUs allow" if advice.is_bounded else ""
        saving = share_text(advice.saving, digits=0)
        workers = f"loader_workers: {advice.loader_workers}{bound}"
        yield f"By estimate, a step of {label} would take about {saving} less with {workers}."


def _shares_text(shares: StepShares) -> str:
    """``31 % (± 2 %) loading data, 20 % (± 2 %) optimizer and 49 % (± 3 %) the rest: compute and
    communication``.
    """
    found = [f"{share_of_step_text(share)} {name_of(part)}" for part, share in shares.found.items()]
    unknown = [name_of(part) for part, share in shares.parts.items() if share is None]
    rest = f"{share_of_step_text(shares.rest)} {joined([COMPUTE, *unknown])}"
    together = ", which can't be told apart" if unknown else ""
    return f"{joined([*found, rest])}{together}"


def _widest_text(shares: StepShares) -> str:
    return share_text(max(share.half_width for share in shares.noise.values()), digits=0)


def is_wait_named(parts: StepParts) -> bool:
    """Whether the log's wait for data matters, and no probe says what data costs: none was made, or
    they are too noisy to exclude that wait.
    """
    data = data_share(parts)
    waiting = wait_share(parts)
    is_told = (
        parts.is_probed
        and data is not None
        and (data.is_found or data.value + data.half_width < waiting.value)
    )
    return not is_told and waiting.is_found and waiting.value >= LEAST_NAMED_SHARE


def name_of(part: str) -> str:
    return NAMES.get(part, part)


def share_of_step_text(share: Share) -> str:
    return f"{share_text(share.value, digits=0)} (± {share_text(share.half_width, digits=0)})"
