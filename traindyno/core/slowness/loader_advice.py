"""How many loader workers would make a step's data in the time of the rest of it: an estimate, bounded by vCPUs."""

from dataclasses import dataclass
from math import ceil

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.measurement.step_parts import StepParts
from traindyno.core.slowness.step_shares import data_share
from traindyno.core.suite.processes import world_size
from traindyno.core.suite.settings import Settings

# A smaller part of a step is not named as a reason, and a smaller saving not as advice.
LEAST_NAMED_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class LoaderAdvice:
    """``saving`` is the share of a step's time that ``loader_workers`` in each process would save, by estimate."""

    loader_workers: int
    saving: float
    #: Whether more workers would save more, but the instance has no vCPUs for them.
    is_bounded: bool


def advise_workers(settings: Settings, parts: StepParts | None) -> LoaderAdvice | None:
    """None where data takes little time, or the type's vCPUs are unknown or also do the training.

    A process that loads by itself takes the time of the loading for it. Workers that training waits for are busy all
    the time: n of them make the data of n steps in the time of n steps.
    """
    data = data_share(parts)
    if parts is None or data is None or not data.is_found or data.value < LEAST_NAMED_SHARE:
        return None
    most, data_seconds = _most_workers(settings), data.value * parts.step.mean
    rest = parts.step.mean - data_seconds
    if most is None or rest <= 0:
        return None
    workers = settings.loader_workers
    load_seconds = data_seconds if workers == 0 else workers * parts.step.mean
    wanted = max(workers + 1, ceil(load_seconds / rest))
    advised = min(wanted, most)
    if advised <= workers:
        return None
    saving = 1 - max(rest, load_seconds / advised) / parts.step.mean
    if saving < LEAST_NAMED_SHARE:
        return None
    return LoaderAdvice(loader_workers=advised, saving=saving, is_bounded=wanted > most)


def _most_workers(settings: Settings) -> int | None:
    """The vCPUs of each process without the one that it needs itself."""
    found, processes = find_instance_type(settings.instance), world_size(settings)
    if found is None or found.vcpus is None or processes is None or not found.has_accelerator:
        return None
    return max(0, found.vcpus // (processes // settings.instance_count) - 1)
