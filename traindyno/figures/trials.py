"""A trial: its value, and where it ran; and the draws of hosts of several."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One trial's value, and where it ran.

    ``hosts`` are the machines that it ran on; None where they are unknown: it counts as a separate
    draw. ``block`` is the round that it shares with trials of other cells, or one of its own; None
    where only its value counts. ``job`` is the one that carried it with others, ``place`` its place
    there, from 1.
    """

    value: float
    hosts: frozenset[str] | None = None
    block: str | None = None
    job: str | None = None
    place: int | None = None


def draws_of(trials: Sequence[frozenset[str] | None]) -> list[int]:
    """The draw of each trial, by its hosts.

    Trials whose sets of hosts share one are one draw: the connected components of the hosts. Each
    trial on unknown hosts is a draw of its own.
    """
    label: dict[str, int] = {}
    for number, hosts in enumerate(trials):
        joined = {label[host] for host in hosts or () if host in label}
        if joined:
            label.update({host: number for host, draw in label.items() if draw in joined})
        label.update(dict.fromkeys(hosts or (), number))
    return [label[min(hosts)] if hosts else number for number, hosts in enumerate(trials)]


def draw_count(trials: Sequence[Trial]) -> int:
    """How many independent draws of hosts the trials ran on."""
    return len(set(draws_of([trial.hosts for trial in trials])))


def logs_by_draw(trials: Sequence[Trial]) -> list[list[float]]:
    groups: dict[int, list[float]] = {}
    for draw, trial in zip(draws_of([trial.hosts for trial in trials]), trials, strict=True):
        groups.setdefault(draw, []).append(log(trial.value))
    return list(groups.values())


def repeats_in_blocks(trials: Sequence[Trial]) -> bool:
    """Whether trials share a block: their scatter tells nothing of what the cell and the block have
    in common.
    """
    blocks = [trial.block for trial in trials if trial.block is not None and trial.job is None]
    return len(set(blocks)) < len(blocks)


def independent_count(trials: Sequence[Trial]) -> int:
    """How many values the trials are worth: repeats in a block, or on one of several hosts, are
    one.
    """
    if repeats_in_blocks(trials):
        return len({trial.block for trial in trials})
    draws = draw_count(trials)
    return draws if draws > 1 else len(trials)
