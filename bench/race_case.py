"""The case that two trainers run against each other."""

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
    """One workload and our settings, as in a suite's document."""

    name: str
    against: Against
    workload: Mapping[str, Any]
    settings: Mapping[str, Any]
    #: Changes of the settings, of which the fastest races; without any, the settings race.
    candidates: tuple[Mapping[str, Any], ...] = ()
    #: The folder of the dataset's files, if it has any.
    data_folder: str | None = None
    steps: int
    warmup_steps: int
    rounds: int
    threads: int | None = 1
    #: Whether the other trainer is run, or only ours.
    with_theirs: bool = True
    #: Whether the least that a step needs is a third side (fp32 only).
    with_bare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceResult:
    """The result of a race: one number per round and side. Padding is not counted as tokens."""

    chosen: Mapping[str, Any] = field(default_factory=dict)
    our_step_seconds: tuple[float, ...]
    their_step_seconds: tuple[float, ...] = ()
    #: Seconds of the least that a step needs.
    bare_step_seconds: tuple[float, ...] = ()
    our_tokens_per_second: tuple[float, ...]
    their_tokens_per_second: tuple[float, ...] = ()
    our_peak_memory_bytes: int | None = None
    their_peak_memory_bytes: int | None = None
    flops_per_token: float
    parameters: int
    #: The largest difference of losses between ours and any other side over the first steps, as
    #: evidence of equal work; None if the work differs, or there is no other side.
    largest_loss_difference: float | None = None
    #: The difference of the tokens that the sides count in the same rows, if each has its own
    #: batches.
    token_count_difference: int | None = None
    candidate_tokens_per_second: tuple[float, ...] = ()
