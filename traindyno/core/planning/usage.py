"""How much of a quota the account's training jobs use, counted from the jobs themselves."""

from collections.abc import Iterable
from dataclasses import dataclass

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.planning.quotas import Counted, Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldInstances:
    """Instances of one job, or of one of its instance groups; ``is_kept_warm``: kept after the job's end for another
    job.
    """

    instance_type: str
    instance_count: int
    is_spot: bool
    is_kept_warm: bool


def count_in_use(quota: Quota, held: Iterable[HeldInstances]) -> int | None:
    """None for a quota that does not limit instances in use."""
    if quota.counts is None:
        return None
    return sum(each.instance_count for each in held if _counts(quota, each))


def _counts(quota: Quota, held: HeldInstances) -> bool:
    if quota.instance_type is None:
        found = find_instance_type(held.instance_type)
        is_of_type = found is None or not found.is_local
    else:
        is_of_type = held.instance_type == quota.instance_type
    match quota.counts:
        case Counted.TRAINING:
            return is_of_type and not held.is_spot  # instances that are kept warm count here too
        case Counted.SPOT:
            return is_of_type and held.is_spot
        case Counted.WARM_POOL:
            return is_of_type and held.is_kept_warm
        case None:
            return False
