"""The tables on whole suites."""

from collections.abc import Iterator

from tests.simulations.logged_runs import judge
from tests.simulations.repetitions import repetitions
from tests.simulations.suites.figures import Figures, Row, measure
from tests.simulations.suites.logs import STEPS
from tests.simulations.suites.rows import ROWS
from tests.simulations.suites.single_runs import JUDGED_RUNS

SUITES = 120
RUNS = 200
HEAD = ["wrong", "no recommendation", "interval holds", "prediction holds", "within 2 %", "mean regret", "missed"]


def suites(count: int = SUITES) -> Iterator[list[str]]:
    """``count`` of each row; fewer of those that take long."""
    yield [f"{count} suites of each row", *HEAD]
    for row in ROWS:
        found = measure(row, count)
        yield table_row(row, found)


def table_row(row: Row, found: Figures) -> list[str]:
    shares = (found.wrong, found.undecided, found.covered, found.predicted, found.within, found.regret)
    return [row.name, *map(_percent, shares), _limits(row, found)]


def _limits(row: Row, found: Figures) -> str:
    """The limits that are not kept; in parentheses those that no rule can keep in this row."""
    excused = [f"({name})" for name in found.excused(row)]
    return ", ".join([*found.missed(row), *excused]) or "–"


def runs() -> Iterator[list[str]]:
    yield [f"one run of {STEPS} steps", "within 2 %", "left open", "not steady", "wrong"]
    for scenario in JUDGED_RUNS:
        found = judge(scenario.process, repetitions(RUNS, scenario.name), steps=STEPS)
        yield [scenario.name, *map(_percent, (found.within, found.undecided, found.not_steady, found.wrong))]


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share * 100:.1f} %"
