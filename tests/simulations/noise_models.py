"""Trials of cells as machines produce them: each model gives values (less is better) and the hosts
they ran on.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, sqrt

from traindyno.core.suite.cells import Cell
from traindyno.core.suite.runs import trial_runs
from traindyno.figures.trials import Trial

CV = 0.02
CORRELATION = 0.7
Cells = list[list[Trial]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The cells of a suite by the logarithms of their true means, and the trials of each."""

    levels: tuple[float, ...]
    trials: int


NoiseModel = Callable[[random.Random, Shape, Sequence[Cell]], Cells]


def independent(source: random.Random, shape: Shape, _: Sequence[Cell]) -> Cells:
    return [
        [_trial(level, source.gauss(0, CV)) for _ in range(shape.trials)] for level in shape.levels
    ]


def own_hosts(source: random.Random, shape: Shape, _: Sequence[Cell]) -> Cells:
    """Warm pools: each cell keeps one host, whose speed differs from the others' by a CV of 2 %."""
    cells = []
    for index, level in enumerate(shape.levels):
        speed = source.gauss(0, CV)
        cells.append(
            [
                _trial(level, speed + source.gauss(0, CV / 4), f"host {index}")
                for _ in range(shape.trials)
            ]
        )
    return cells


def shared_hosts(source: random.Random, shape: Shape, _: Sequence[Cell]) -> Cells:
    """Every trial runs on one of three hosts, drawn at random, that all cells use."""
    speeds = [source.gauss(0, CV) for _ in range(3)]
    draws = [[source.randrange(3) for _ in range(shape.trials)] for _ in shape.levels]
    return [
        [_trial(level, speeds[host] + source.gauss(0, CV / 4), f"host {host}") for host in hosts]
        for level, hosts in zip(shape.levels, draws, strict=True)
    ]


def correlated_in_time(source: random.Random, shape: Shape, cells: Sequence[Cell]) -> Cells:
    """The machine's speed drifts (first-order autoregression) from run to run, in the order that
    the lab draws.
    """
    runs = trial_runs(f"execution {source.random()}", cells, range(1, shape.trials + 1))
    speeds = _autoregression(source, len(runs))
    by_run = {(run.cell.cell_id, run.trial): speed for run, speed in zip(runs, speeds, strict=True)}
    return [
        [_trial(level, by_run[cell.cell_id, trial + 1]) for trial in range(shape.trials)]
        for level, cell in zip(shape.levels, cells, strict=True)
    ]


def correlated_in_cells(source: random.Random, shape: Shape, _: Sequence[Cell]) -> Cells:
    """Each cell's trials resemble the one before, for a reason that neither hosts nor time
    explain.
    """
    return [
        [_trial(level, speed) for speed in _autoregression(source, shape.trials)]
        for level in shape.levels
    ]


def unequal_spreads(source: random.Random, shape: Shape, _: Sequence[Cell]) -> Cells:
    """CVs from 1 % to 5 %."""
    last = max(1, len(shape.levels) - 1)
    return [
        [_trial(level, source.gauss(0, 0.01 + 0.04 * index / last)) for _ in range(shape.trials)]
        for index, level in enumerate(shape.levels)
    ]


def noisy_leader(source: random.Random, shape: Shape, _: Sequence[Cell]) -> Cells:
    """One cell scatters by 5 %, all others by 1 %."""
    return [
        [_trial(level, source.gauss(0, 0.05 if index == 0 else 0.01)) for _ in range(shape.trials)]
        for index, level in enumerate(shape.levels)
    ]


def _trial(level: float, noise: float, host: str | None = None) -> Trial:
    return Trial(value=exp(level + noise), hosts=frozenset({host}) if host else None)


def _autoregression(source: random.Random, count: int) -> list[float]:
    values = [source.gauss(0, CV)]
    for _ in range(count - 1):
        values.append(CORRELATION * values[-1] + source.gauss(0, CV * sqrt(1 - CORRELATION**2)))
    return values
