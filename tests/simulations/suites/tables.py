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
    """The rows of the table, from so many suites of each; fewer of the slow ones."""
    yield [f"{count} suites of each row", *HEAD]
    for row in ROWS:
        figures = measure(row, count)
        yield table_row(row, figures)


def table_row(row: Row, figures: Figures) -> list[str]:
    shares = (
        figures.wrong,
        figures.undecided,
        figures.covered,
        figures.predicted,
        figures.within,
        figures.regret,
    )
    return [row.name, *map(percent, shares), _limits(row, figures)]


def _limits(row: Row, figures: Figures) -> str:
    """The limits that are not kept; in parentheses those that no rule can keep in this row."""
    excused = [f"({name})" for name in figures.excused(row)]
    return ", ".join([*figures.missed(row), *excused]) or "–"


def runs(
    scenarios: Iterable[Scenario] = JUDGED_RUNS, count: int = RUNS, steps: int = STEPS
) -> Iterator[list[str]]:
    yield [f"one run of {steps} steps", "within 2 %", "left open", "not steady", "wrong"]
    for scenario in scenarios:
        judged = judge(scenario.process, repetitions(count, scenario.name), steps=steps)
        yield [
            scenario.name,
            *map(percent, (judged.within, judged.undecided, judged.not_steady, judged.wrong)),
        ]
