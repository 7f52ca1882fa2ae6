"""Prints the tables of the simulations: all, or those of the named parts.

A number is that of the suites of a row.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from tests.simulations.decision_tables import coverage, false_claims, power
from tests.simulations.future_runs import measure_coverage
from tests.simulations.repetitions import percent, repetitions
from tests.simulations.scenarios import CELLS, RATE_SCENARIOS, STEPS, STOP_SCENARIOS
from tests.simulations.shared_tables import shared
from tests.simulations.stopped_runs import measure_stops
from tests.simulations.suites.tables import runs, suites
from tests.simulations.test_race_figures import (
    HOSTS_OF_ONE_PERCENT,
    LED,
    ONE_JOB_IN_FOUR_SLOW,
    measure,
)

REPETITIONS = 400
PREDICTION_STEPS = 120


def main() -> None:
    counts = [int(argument) for argument in sys.argv[1:] if argument.isdigit()]
    wanted = [argument for argument in sys.argv[1:] if not argument.isdigit()]
    parts: dict[str, Callable[[], Iterable[Iterable[str]]]] = {
        "measurement": lambda: (
            _table(runs(RATE_SCENARIOS, REPETITIONS, STEPS)),
            _stops(),
            _predictions(),
        ),
        "decision": lambda: map(_table, (false_claims(), power(), coverage())),
        "suites": lambda: map(_table, (runs(), suites(*counts))),
        "shared": lambda: [_table(shared(*counts))],
        "race": lambda: [_table(_race(*counts))],
    }
    for name in wanted or parts:
        for table in parts[name]():
            sys.stdout.write("\n".join([*table, "", ""]))


def _race(count: int = 100) -> Iterator[list[str]]:
    yield [f"{count} races, hosts of 1 %", "one run holds", "ratios hold", "width of the mean"]
    for conditions in (*HOSTS_OF_ONE_PERCENT, ONE_JOB_IN_FOUR_SLOW):
        for name, levels in (
            ("two equal cells", (0.0, 0.0)),
            ("four equal cells", (0.0,) * 4),
            ("0, 3, 5, 8 %", LED),
        ):
            measured = measure(levels, conditions, count)
            slow = ", one job in four slower by 12 %" if conditions is ONE_JOB_IN_FOUR_SLOW else ""
            shares = (measured.run.share, measured.ratios.share, measured.width)
            yield [f"{name}, runs of {conditions.noise * 100:g} %{slow}", *map(percent, shares)]


def _table(rows: Iterator[list[str]]) -> Iterator[str]:
    yield from _head(next(rows))
    yield from map(_row, rows)


def _stops() -> Iterator[str]:
    yield from _head(
        ["`stop_when` of 1 %", "stopped within 6,000 steps", "true of these", "median steps"]
    )
    for scenario in STOP_SCENARIOS:
        measured = measure_stops(scenario.process, repetitions(REPETITIONS, scenario.name))
        steps = "–" if measured.median_steps is None else f"{measured.median_steps:.0f}"
        yield _row(
            [
                scenario.name,
                percent(measured.stopped),
                percent(measured.true) if measured.stopped else "–",
                steps,
            ]
        )


def _predictions() -> Iterator[str]:
    yield from _head(["cell", "intervals that held a later run", "median error", "not given"])
    for cell in CELLS:
        measured = measure_coverage(
            cell.process,
            repetitions(REPETITIONS, cell.name),
            steps=PREDICTION_STEPS,
            trials=cell.trials,
            host_deviation=cell.host_deviation,
        )
        yield _row(
            [
                cell.name,
                *map(percent, (measured.covered, measured.median_error, measured.not_given)),
            ]
        )


def _head(names: Sequence[str]) -> Iterator[str]:
    yield _row(names)
    yield "|---" + "|---:" * (len(names) - 1) + "|"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    main()
