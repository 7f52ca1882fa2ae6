"""How the trials of a cell differ as wholes: hosts, time of day, cold starts, lost trials."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from math import comb, exp, log, log1p, pi, sin, sqrt
from typing import Any

from tests.simulations.suites.logs import STEPS
from traindyno.core.suite.suite import Run

SLOW_SHARE = 1 / 6
SLOWER = log(1.08)
SLOW_STEP_SECONDS = 5.0  # jobs of a quarter of an hour show a rate of faults


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """A drawn trial; the factor is by how much it is slower than its cell's level."""

    log_factor: float
    host_ids: tuple[str, ...] = ()
    is_lost: bool = False
    lost_attempts: int = 0


Draw = Callable[[int, Run], Drawn]


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """One suite.

    ``on_its_hosts``: the expected factor's logarithm of a cell on the hosts that the suite has.
    """

    draw: Draw
    on_its_hosts: Callable[[int], float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelNoise:
    """The noise between trials; ``start`` begins a suite of so many cells.

    ``mean`` is the logarithm of a trial's expected factor.

    ``later`` draws the factor of a later run of a cell, on other hosts and at another time; None:
    as any trial.
    """

    start: Callable[[random.Random, int], Draw | Started]
    mean: float = 0.0
    later: Callable[[random.Random], float] | None = None
    #: The expected factor in this cell only.
    mean_in: tuple[tuple[int, float], ...] = ()
    #: Faults of the service per second of a job, in trials and in a later run.
    faults: float = 0.0

    def begin(self, source: random.Random, cells: int) -> Started:
        started = self.start(source, cells)
        return started if isinstance(started, Started) else Started(draw=started)

    def expected(self, cell: int) -> float:
        return dict(self.mean_in).get(cell, self.mean)


def each_trial(draw: Callable[[random.Random, int, Run], Drawn], **changes: Any) -> LevelNoise:
    """The noise that ``draw`` gives each trial of a cell on a new host, whatever the others had."""

    def on_new_host(source: random.Random, cell: int, run: Run) -> Drawn:
        return replace(draw(source, cell, run), host_ids=(f"host {run.run_id}",))

    return LevelNoise(start=lambda source, _: partial(on_new_host, source), **changes)


def hosts(deviation: float) -> LevelNoise:
    """A new host for each trial, of a speed of this CV."""
    return each_trial(
        lambda source, _, run: Drawn(log_factor=source.gauss(0, deviation)), mean=deviation**2 / 2
    )


def kept_hosts(deviation: float) -> LevelNoise:
    """Each cell keeps one host."""

    def start(source: random.Random, cells: int) -> Started:
        speeds = [source.gauss(0, deviation) for _ in range(cells)]

        def draw(cell: int, _: Run) -> Drawn:
            return Drawn(
                log_factor=speeds[cell] + source.gauss(0, deviation / 4), host_ids=(f"host {cell}",)
            )

        return Started(draw=draw, on_its_hosts=speeds.__getitem__)

    return LevelNoise(
        start=start, mean=deviation**2 / 2, later=lambda source: source.gauss(0, deviation)
    )


def slow_hosts(instances: int = 1, *, kept: int = 0) -> LevelNoise:
    """One host in six is slower by 8 %, and the slowest of a trial's hosts decides.

    ``kept``: a cell has so many.
    """
    share = 1 - (1 - SLOW_SHARE) ** instances

    def start(source: random.Random, cells: int) -> Draw:
        pools = [[source.random() < share for _ in range(kept)] for _ in range(cells)]

        def draw(cell: int, run: Run) -> Drawn:
            if kept:
                place = source.randrange(kept)
                is_slow = pools[cell][place]
                ids: tuple[str, ...] = (f"host {cell} {place}",)
            else:
                is_slow = source.random() < share
                ids = tuple(f"host {run.run_id} {index}" for index in range(instances))
            return Drawn(log_factor=SLOWER * is_slow + source.gauss(0, 0.005), host_ids=ids)

        return draw

    return LevelNoise(
        start=start,
        mean=log1p(share * (exp(SLOWER) - 1)),
        later=lambda source: SLOWER * (source.random() < share) + source.gauss(0, 0.005),
    )


def reserved(instances: int, of: int, *, per_cell: bool = False) -> LevelNoise:
    """A trial's hosts are drawn from a reserved pool, of which one in six is slower by 8 %; the
    slowest decides.

    ``per_cell``: each cell has a pool of its own.
    """
    share = 1 - (1 - SLOW_SHARE) ** instances

    def start(source: random.Random, cells: int) -> Started:
        pools = [
            [source.random() < SLOW_SHARE for _ in range(of)]
            for _ in range(cells if per_cell else 1)
        ]

        def draw(cell: int, _: Run) -> Drawn:
            number = cell if per_cell else 0
            chosen = source.sample(range(of), instances)
            is_slow = any(pools[number][host] for host in chosen)
            ids = tuple(f"host {number} {host}" for host in sorted(chosen))
            return Drawn(log_factor=SLOWER * is_slow + source.gauss(0, 0.005), host_ids=ids)

        def on_its_hosts(cell: int) -> float:
            fast = of - sum(pools[cell if per_cell else 0])
            return log1p((1 - comb(fast, instances) / comb(of, instances)) * (exp(SLOWER) - 1))

        return Started(draw=draw, on_its_hosts=on_its_hosts)

    return LevelNoise(start=start, mean=log1p(share * (exp(SLOWER) - 1)))


def cold_first_trials(share: float = 0.12, deviation: float = 0.01) -> LevelNoise:
    """The first trial of each cell is slower by ``share``."""

    return each_trial(
        lambda source, _, run: Drawn(
            log_factor=log1p(share) * (run.trial == 1) + source.gauss(0, deviation)
        ),
        later=lambda source: source.gauss(0, deviation),
    )


def time_of_day(
    correlation: float = 0.95, deviation: float = 0.03, amplitude: float = 0.02
) -> LevelNoise:
    """From run to run, in the order in which they are submitted: an autoregression and a sine of 40
    runs.
    """

    def start(source: random.Random, _: int) -> Draw:
        value = source.gauss(0, deviation)
        count = source.randrange(40)

        def draw(_: int, run: Run) -> Drawn:
            nonlocal value, count
            value = correlation * value + source.gauss(0, deviation * sqrt(1 - correlation**2))
            count += 1
            own = source.gauss(0, 0.003)
            factor = value + amplitude * sin(2 * pi * count / 40) + own
            return Drawn(log_factor=factor, host_ids=(f"host {run.run_id}",))

        return draw

    def later(source: random.Random) -> float:
        return source.gauss(0, deviation) + amplitude * sin(2 * pi * source.random())

    return LevelNoise(start=start, later=later)


def own_series(correlation: float = 0.7, deviation: float = 0.02) -> LevelNoise:
    """Trials of a cell resemble the one before, for a reason that neither hosts nor time
    explain.
    """

    def start(source: random.Random, cells: int) -> Draw:
        values = [source.gauss(0, deviation) for _ in range(cells)]

        def draw(cell: int, run: Run) -> Drawn:
            drawn = Drawn(log_factor=values[cell], host_ids=(f"host {run.run_id}",))
            values[cell] = correlation * values[cell] + source.gauss(
                0, deviation * sqrt(1 - correlation**2)
            )
            return drawn

        return draw

    return LevelNoise(start=start, later=lambda source: source.gauss(0, deviation))


def lost_at_random(share: float, deviation: float = 0.01) -> LevelNoise:
    return each_trial(
        lambda source, _, run: Drawn(
            log_factor=source.gauss(0, deviation), is_lost=source.random() < share
        ),
        later=lambda source: source.gauss(0, deviation),
        faults=_fault_rate(share),
    )


def _fault_rate(share: float) -> float:
    """So many per second end this share of the jobs of 200 slow steps."""
    return -log1p(-share) / (STEPS * SLOW_STEP_SECONDS)


def lost_if_slow(limit: float = 1.05, share: float = 0.8, deviation: float = 0.04) -> LevelNoise:
    """Trials slower than ``limit`` are lost in this share: what is left is faster than a later
    run.
    """

    def draw(source: random.Random, _: int, run: Run) -> Drawn:
        factor = source.gauss(0, deviation)
        return Drawn(log_factor=factor, is_lost=factor > log(limit) and source.random() < share)

    return each_trial(draw, mean=deviation**2 / 2, later=lambda source: source.gauss(0, deviation))


def slow_ones_lost(
    cell: int, share: float = 0.45, slower: float = 0.15, deviation: float = 0.01
) -> LevelNoise:
    """In one cell, 45 % of the hosts are slower by 15 %, and trials on them are lost.

    A later run has the others.
    """

    def draw(source: random.Random, drawn_cell: int, run: Run) -> Drawn:
        is_slow = drawn_cell == cell and source.random() < share
        return Drawn(
            log_factor=log1p(slower) * is_slow + source.gauss(0, deviation), is_lost=is_slow
        )

    return each_trial(draw, mean_in=((cell, log1p(share * slower)),))


def retried(share: float, deviation: float = 0.01) -> LevelNoise:
    """In this share of the trials, a fault of the service ends the first attempt."""

    return each_trial(
        lambda source, _, run: Drawn(
            log_factor=source.gauss(0, deviation), lost_attempts=int(source.random() < share)
        ),
        later=lambda source: source.gauss(0, deviation),
        faults=_fault_rate(share),
    )
