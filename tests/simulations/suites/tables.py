"""The tables on whole suites."""

from collections.abc import Iterable, Iterator

from tests.simulations.logged_runs import judge
from tests.simulations.repetitions import percent, repetitions
from tests.simulations.scenarios import Scenario
from tests.simulations.suites.figures import Figures, Row, measure
from tests.simulations.suites.logs import STEPS
from tests.simulations.suites.rows import ROWS
from tests.simulations.suites.single_runs import JUDGED_RUNS

SUITES = 120
RUNS = 200
HEAD = [
    "wrong",
    "no recommendation",
    "interval holds",
    "prediction holds",
    "within 2 %",
    "mean regret",
    "missed",
]


def suites(count: int = SUITES) -> Iterator[list[str]]:
    """``count`` of each row; fewer of those that take long."""
    yield [f"{count} suites of each row", *HEAD]
    for row in ROWS:
        found = measure(row, count)
        yield table_row(row, found)


def table_row(row: Row, found: Figures) -> list[str]:
    shares = (
        found.wrong,
        found.undecided,
        found.covered,
        found.predicted,
        found.within,
        found.regret,
    )
    return [row.name, *map(percent, shares), _limits(row, found)]


def _limits(row: Row, found: Figures) -> str:
    """The limits that are not kept; in parentheses those that no rule can keep in this row."""
    excused = [f"({name})" for name in found.excused(row)]
    return ", ".join([*found.missed(row), *excused]) or "–"


def runs(
    scenarios: Iterable[Scenario] = JUDGED_RUNS, count: int = RUNS, steps: int = STEPS
) -> Iterator[list[str]]:
    yield [f"one run of {steps} steps", "within 2 %", "left open", "not steady", "wrong"]
    for scenario in scenarios:
        found = judge(scenario.process, repetitions(count, scenario.name), steps=steps)
        yield [
            scenario.name,
            *map(percent, (found.within, found.undecided, found.not_steady, found.wrong)),
        ]
