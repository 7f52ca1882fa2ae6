"""Runs all simulations and writes their tables into docs/method.md; a number is that of the suites of each row."""

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tests.simulations.decision_tables import coverage, false_claims, power
from tests.simulations.future_runs import measure_coverage
from tests.simulations.logged_runs import judge
from tests.simulations.repetitions import repetitions
from tests.simulations.scenarios import CELLS, RATE_SCENARIOS, STEPS, STOP_SCENARIOS
from tests.simulations.shared_tables import shared
from tests.simulations.stopped_runs import measure_stops
from tests.simulations.suites.tables import runs, suites

PAGE = Path("docs/method.md")
BEGIN, END = "<!-- measurement simulations: begin -->", "<!-- measurement simulations: end -->"
DECISION_BEGIN, DECISION_END = "<!-- decision simulations: begin -->", "<!-- decision simulations: end -->"
SUITES_BEGIN, SUITES_END = "<!-- suite simulations: begin -->", "<!-- suite simulations: end -->"
SHARED_BEGIN, SHARED_END = "<!-- shared job simulations: begin -->", "<!-- shared job simulations: end -->"
REPETITIONS = 400
PREDICTION_STEPS = 120


def main() -> None:
    counts = [int(each) for each in sys.argv[1:] if each.isdigit()]
    parts = [each for each in sys.argv[1:] if not each.isdigit()] or ["measurement", "decision", "suites", "shared"]
    if "measurement" in parts:
        _write((_rates(), _stops(), _predictions()), BEGIN, END)
    if "decision" in parts:
        _write(map(_table, (false_claims(), power(), coverage())), DECISION_BEGIN, DECISION_END)
    if "suites" in parts:
        _write(map(_table, (runs(), suites(*counts))), SUITES_BEGIN, SUITES_END)
    if "shared" in parts:
        _write([_table(shared(*counts))], SHARED_BEGIN, SHARED_END)


def _write(tables: Iterable[Iterable[str]], begin: str, end: str) -> None:
    text = "\n\n".join("\n".join(table) for table in tables)
    before, rest = PAGE.read_text(encoding="utf-8").split(begin)
    after = rest.split(end)[1]
    PAGE.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


def _table(rows: Iterator[list[str]]) -> Iterator[str]:
    yield from _head(next(rows))
    yield from map(_row, rows)


def _rates() -> Iterator[str]:
    yield from _head([f"one run of {STEPS} steps", "within 2 %", "not steady", "wrong"])
    for scenario in RATE_SCENARIOS:
        found = judge(scenario.process, repetitions(REPETITIONS, scenario.name), steps=STEPS)
        yield _row([scenario.name, *map(_percent, (found.within, found.not_steady, found.wrong))])


def _stops() -> Iterator[str]:
    yield from _head(["`stop_when` of 1 %", "stopped within 6,000 steps", "true of these", "median steps"])
    for scenario in STOP_SCENARIOS:
        found = measure_stops(scenario.process, repetitions(REPETITIONS, scenario.name))
        steps = "–" if found.median_steps is None else f"{found.median_steps:.0f}"
        yield _row([scenario.name, _percent(found.stopped), _percent(found.true) if found.stopped else "–", steps])


def _predictions() -> Iterator[str]:
    yield from _head(["cell", "intervals that held a later run", "median error", "not given"])
    for cell in CELLS:
        found = measure_coverage(
            cell.process,
            repetitions(REPETITIONS, cell.name),
            steps=PREDICTION_STEPS,
            trials=cell.trials,
            host_deviation=cell.host_deviation,
        )
        yield _row([cell.name, *map(_percent, (found.covered, found.median_error, found.not_given))])


def _head(names: Sequence[str]) -> Iterator[str]:
    yield _row(names)
    yield "|---" + "|---:" * (len(names) - 1) + "|"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _percent(share: float) -> str:
    return f"{share:.1%}".replace("%", " %")


if __name__ == "__main__":
    main()
