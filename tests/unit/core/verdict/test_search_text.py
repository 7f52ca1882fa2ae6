"""What is said of the cells that a race dropped."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.unit.verdict_samples import SECOND, make_estimate, make_row, make_verdict
from traindyno.core.suite.choices import GoalKind
from traindyno.core.suite.goal import Goal
from traindyno.core.verdict.open_text import describe_search, none_near
from traindyno.core.verdict.verdict import Verdict


def verdict_of(dropped: Mapping[str, float], failed: int = 0) -> Verdict:
    return make_verdict(
        rows=(make_row(), make_row(SECOND, failed=failed)), rivals=(), dropped=dropped
    )


@pytest.mark.parametrize(
    ("ratio", "failed", "said"),
    [
        (1 / 1.09, 0, "no other cell was within 5 % of it"),
        (
            1 / 1.07,
            0,
            (
                "only it was measured again; the closest alternative was 7.0 % behind in its "
                "single run"
            ),
        ),
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
    verdict = replace(
        verdict_of({SECOND: 1 / 1.4}), goal=Goal(kind=GoalKind.CHEAPEST_TO, accuracy=0.8)
    )
    assert none_near(verdict) == "no other cell was within 10 % of it"
    assert "closest alternative was 9.0 %" in (
        none_near(replace(verdict, dropped={SECOND: 1 / 1.09})) or ""
    )


@pytest.mark.parametrize(
    ("trials", "least_behind", "said"),
    [
        (0, 0.06, "no other cell was within 5 % of it"),
        (
            0,
            0.01,
            (
                "only it was measured again; the closest alternative was at least 1 % behind "
                "when its run was ended"
            ),
        ),
        (3, 0.01, None),
    ],
)
def test_a_cell_that_an_outpaced_run_dropped_was_as_near_as_its_bound(
    trials: int, least_behind: float, said: str | None
) -> None:
    """One that ran again, because the run ahead of it failed later, is compared by its other
    runs.
    """
    row = make_row(SECOND, outpaced=1, trials=trials, least_behind=least_behind)
    assert none_near(make_verdict(rows=(make_row(), row), rivals=(), dropped={})) == said


@pytest.mark.parametrize(
    ("deviation", "said"), [(0.01, "about 1 %"), (0.003, "about 0.3 %"), (None, None)]
)
def test_what_single_runs_say_is_said_with_their_scatter(
    deviation: float | None, said: str | None
) -> None:
    best = make_row(usd=replace(make_estimate(10.0), variation=deviation))
    (text,) = describe_search(
        make_verdict(rows=(best, make_row(SECOND)), rivals=(), dropped={SECOND: 1 / 1.07})
    )
    scatter = f" (single runs scatter by {said})" if said else ""
    assert text == (
        "1 cell was dropped: in its one run, measured 7 % dearer than the recommended "
        f"cell{scatter}."
    )
