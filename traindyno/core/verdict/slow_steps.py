"""How much of a step waits for data, in sentences, and what more loader workers would save."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

from traindyno.core.costs.quantity_text import range_text, share_text
from traindyno.core.documents.stored import StoredPart
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.measurement.step_parts import StepParts, mean_parts
from traindyno.core.run.processes import world_size
from traindyno.core.run.settings import Settings
from traindyno.core.step_log.line import RUN

# A smaller part of a step is not named as a reason, and a smaller saving not as advice.
LEAST_NAMED_SHARE = 0.05
# A process that waits for others computes in less of the time.
MOSTLY = 0.5


def wait_share(parts: StepParts) -> float:
    """The share of a step's time, 0 to 1, that waits for data, by the log."""
    return parts.share(parts.waiting)


def is_wait_named(parts: StepParts) -> bool:
    """Whether the wait for data is more than noise, and large enough to matter."""
    is_more = parts.waiting.mean > parts.waiting.half_width
    return is_more and wait_share(parts) >= LEAST_NAMED_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderAdvice:
    """How many loader workers each process should have, and the share of a step's time that they
    would save, by estimate.
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
    if parts is None or not is_wait_named(parts):
        return None
    instance_type = find_instance_type(settings.instance)
    processes = world_size(settings)
    data_seconds = wait_share(parts) * parts.step.mean
    workers = settings.loader_workers
    rest = parts.step.mean - data_seconds
    if (
        instance_type is None
        or instance_type.vcpus is None
        or processes is None
        or not instance_type.has_accelerator
        or rest <= 0
    ):
        return None
    # the vCPUs of each process without the one that it needs itself
    most = max(0, instance_type.vcpus // (processes // settings.instance_count) - 1)
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
    """Means over a cell's measured trials: the wait of its steps for data, and what would make it
    shorter.
    """

    kind: ClassVar[str] = "steps"
    step_parts: StepParts | None = None
    #: The share of the wait in each trial.
    wait_shares: tuple[float, ...] = ()
    #: What more loader workers would save, by estimate.
    loader_advice: LoaderAdvice | None = None


def measure_steps(settings: Settings, measured: Sequence[RunResult]) -> CellSteps:
    """Advice is for the built-in training code, which has the setting."""
    trials = [
        result.measured.step_parts
        for result in measured
        if result.measured and result.measured.step_parts
    ]
    parts = mean_parts(trials)
    is_built_in = any(RUN in result.facts for result in measured)
    return CellSteps(
        step_parts=parts,
        wait_shares=tuple(map(wait_share, trials)),
        loader_advice=advise_workers(settings, parts) if is_built_in else None,
    )


def wait_text(steps: CellSteps) -> str | None:
    """The mean share of a step that waits, and that of the least and the most in a trial; None
    where a wait is not named.
    """
    parts = steps.step_parts
    if parts is None or not is_wait_named(parts):
        return None
    mean = share_text(wait_share(parts), digits=0)
    shares = [share_text(share, digits=0) for share in sorted(steps.wait_shares)]
    if len({*shares}) < 2:
        return mean
    return f"{mean} ({range_text(shares[0], shares[-1])} in its trials)"


def describe_steps(label: str, steps: CellSteps) -> Iterator[str]:
    """Nothing where a step does not wait for data."""
    parts = steps.step_parts
    waiting = wait_text(steps)
    advice = steps.loader_advice
    if parts is not None and waiting is not None:
        yield f"{waiting} of a step of {label} waits for data, by its step log."
        if parts.computing_share is not None and parts.computing_share >= MOSTLY:
            share = share_text(min(1.0, parts.computing_share), digits=0)
            yield (
                f"In {share} of that wait the process computes: it loads the data itself, or does "
                "other work that is in no step and no phase of its log."
            )
    if advice is not None:
        bound = ", which is all that the vCPUs allow" if advice.is_bounded else ""
        saving = share_text(advice.saving, digits=0)
        workers = f"loader_workers: {advice.loader_workers}{bound}"
        yield f"By estimate, a step of {label} would take about {saving} less with {workers}."
