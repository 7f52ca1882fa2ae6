"""What a person decides about a lab, read from the CDK context."""

from dataclasses import dataclass
from enum import StrEnum

from constructs import Node

from traindyno.core.lab import LAB_NAME


class Target(StrEnum):
    AWS = "aws"
    LOCAL = "local"


@dataclass(frozen=True, slots=True, kw_only=True)
class LabSettings:
    """``lane_concurrency`` replaces each lane's own concurrency by one number; None leaves it to the lanes.

    ``data_buckets`` are the person's own buckets that training jobs may read, beside the lab's.
    """

    lab: str
    target: Target
    lane_concurrency: int | None
    notify_email: str | None
    data_buckets: tuple[str, ...]


def read_lab_settings(node: Node) -> LabSettings:
    lab = str(node.get_context("lab"))
    if not LAB_NAME.fullmatch(lab):
        raise ValueError(
            f"context lab={lab!r}: a lab's name is 1 to 19 lower-case letters, digits and single hyphens,"
            " beginning with a letter"
        )
    target = _target(str(node.get_context("target")))
    return LabSettings(
        lab=lab,
        target=target,
        lane_concurrency=_lane_concurrency(node.try_get_context("lane_concurrency"), target),
        notify_email=node.try_get_context("notify_email"),
        data_buckets=tuple(str(node.try_get_context("data_buckets") or "").split()),
    )


def _target(found: str) -> Target:
    try:
        return Target(found)
    except ValueError as error:
        raise ValueError(f"context target={found!r}: expected one of {', '.join(Target)}") from error


def _lane_concurrency(found: object, target: Target) -> int | None:
    if found is None:
        # The local cloud's Step Functions doesn't read a Map's concurrency from its input.
        return 1 if target is Target.LOCAL else None
    if not str(found).isdecimal() or int(str(found)) < 1:
        raise ValueError(f"context lane_concurrency={found!r}: expected a whole number of at least 1")
    return int(str(found))
