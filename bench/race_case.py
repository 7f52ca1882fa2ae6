"""What two trainers run against each other: one workload, our settings, and how often."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Against(StrEnum):
    """The other trainer's side: our very batches with the same options, or its own defaults on the
    same text.
    """

    SAME_WORK = "same-work"
    ITS_DEFAULTS = "its-defaults"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceCase:
    """``workload`` and ``settings`` are a suite document's.

    ``candidates`` are changes of the settings, of which the fastest races; none means the settings
    themselves. ``data_folder`` holds the dataset's files, if it has any. ``with_theirs`` of False:
    only ours is run. ``with_bare``: the least that a step needs is a third side (fp32 only).
    """

    name: str
    against: Against
    workload: Mapping[str, Any]
    settings: Mapping[str, Any]
    candidates: tuple[Mapping[str, Any], ...] = ()
    data_folder: str | None = None
    steps: int
    warmup_steps: int
    rounds: int
    threads: int | None = 1
    with_theirs: bool = True
    with_bare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceResult:
    """``ours`` and ``theirs``: one number per round of seconds per step and of tokens per second,
    padding not counted. ``bare_step_seconds``: the same of the least that a step needs.

    Evidence that the sides do equal work: ``largest_loss_difference`` between ours and any other
    side over the first steps, if the work is the same; ``token_count_difference``, of the tokens
    that the sides count in the same rows, if each has its own batches. None if there is no other
    side.
    """

    chosen: Mapping[str, Any] = field(default_factory=dict)
    our_step_seconds: tuple[float, ...]
    their_step_seconds: tuple[float, ...] = ()
    bare_step_seconds: tuple[float, ...] = ()
    our_tokens_per_second: tuple[float, ...]
    their_tokens_per_second: tuple[float, ...] = ()
    our_peak_memory_bytes: int | None = None
    their_peak_memory_bytes: int | None = None
    flops_per_token: float
    parameters: int
    largest_loss_difference: float | None = None
    token_count_difference: int | None = None
    candidate_tokens_per_second: tuple[float, ...] = ()
