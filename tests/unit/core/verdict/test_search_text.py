"""What is said of the cells that a race dropped."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.unit.verdict_samples import SECOND, make_row, make_verdict
from traindyno.core.verdict.evidence import RunsApart
from traindyno.core.verdict.open_text import describe_search, none_near
from traindyno.core.verdict.verdict import Verdict, are_far

APART = RunsApart(scatter=0.01, nearer=0.05, least_behind=0.08)


def verdict_of(dropped: Mapping[str, float], failed: int = 0) -> Verdict:
    rows = (make_row(), make_row(SECOND, failed=failed))
    return make_verdict(rows=rows, rivals=(), dropped=dropped, apart=APART)


@pytest.mark.parametrize(
    ("ratio", "failed", "said"),
    [
        (1 / 1.09, 0, "no other cell was within 5 % of it"),
        (1 / 1.09, 1, "only it was measured again, and trials of the others failed"),
    ],
)
def test_a_sole_leader_says_why_no_other_cell_was_compared(
    ratio: float, failed: int, said: str
) -> None:
    assert none_near(verdict_of({SECOND: ratio}, failed)) == said


def test_without_a_race_nothing_is_said_of_dropped_cells() -> None:
    assert none_near(verdict_of({})) is None


def test_seeds_make_times_to_a_quality_scatter_more() -> None:
    verdict = replace(verdict_of({SECOND: 1 / 1.4}), apart=replace(APART, nearer=0.1))
    assert none_near(verdict) == "no other cell was within 10 % of it"


@pytest.mark.parametrize(
    ("dropped", "least_behind", "is_far"),
    [
        ({}, 0.06, True),
        ({}, 0.01, False),
        ({}, None, False),
        ({SECOND: 1 / 1.09}, 0.06, True),
        ({SECOND: 1 / 1.07}, 0.06, False),
    ],
)
def test_none_is_near_by_what_single_runs_and_bounds_show(
    dropped: Mapping[str, float], least_behind: float | None, is_far: bool
) -> None:
    rows = (make_row(), make_row("third", outpaced=1, trials=0, least_behind=least_behind))
    assert are_far(APART, rows, dropped) is is_far


@pytest.mark.parametrize(("scatter", "said"), [(0.01, "about 1 %"), (0.003, "about 0.3 %")])
def test_what_single_runs_say_is_said_with_their_scatter(scatter: float, said: str) -> None:
    verdict = verdict_of({SECOND: 1 / 1.09})
    (text,) = describe_search(replace(verdict, apart=replace(APART, scatter=scatter)))
    assert text == (
        "1 cell was dropped: in its one run, measured 9 % dearer than the recommended cell "
        f"(single runs scatter by {said})."
    )
