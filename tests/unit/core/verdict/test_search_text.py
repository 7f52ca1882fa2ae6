"""What is said of the cells that a race dropped."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.unit.verdict_samples import SECOND, make_row, make_verdict
from traindyno.core.verdict.open_text import describe_search, none_near
from traindyno.core.verdict.verdict import Verdict
from traindyno.figures.in_job.run_scatter import RunScatter

SCATTER = RunScatter(0.01)


def verdict_of(dropped: Mapping[str, float], failed: int = 0) -> Verdict:
    rows = (make_row(), make_row(SECOND, failed=failed))
    return make_verdict(rows=rows, rivals=(), dropped=dropped, scatter=SCATTER)


@pytest.mark.parametrize(
    ("ratio", "failed", "said"),
    [
        (1 / 1.09, 0, "every other cell was more than 5 % dearer"),
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
    verdict = replace(verdict_of({SECOND: 1 / 1.4}), scatter=replace(SCATTER, nearer=0.1))
    assert none_near(verdict) == "every other cell was more than 10 % dearer"


@pytest.mark.parametrize(("scatter", "said"), [(0.01, "about 1 %"), (0.003, "about 0.3 %")])
def test_results_of_single_runs_are_said_with_their_scatter(scatter: float, said: str) -> None:
    verdict = verdict_of({SECOND: 1 / 1.09})
    (text,) = describe_search(replace(verdict, scatter=replace(SCATTER, share=scatter)))
    assert text == (
        "1 cell was dropped: in its one run, measured 9 % dearer than the recommended cell "
        f"(single runs scatter by {said})."
    )
