"""What an order of the cells by an estimate is worth to a race, and what a wrong one costs: why
cells are drawn.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean

import pytest

from tests.simulations import race_lab
from tests.simulations.race_lab import Conditions, race
from tests.simulations.response_surface import TABLES_FOLDER, Surface, read_surfaces
from traindyno.core.jobs.job import Job
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.suite.suite import Run, Suite

EVERY = 9


def _value(surface: Surface, run: Run) -> float:
    return surface.value(run.cell.cell_id) or float("inf")


#: Half of the cells are estimated at three times their value.
ORDERS: dict[str, Callable[[Surface, Run], float]] = {
    "true": _value,
    "reversed": lambda surface, run: -_value(surface, run),
    "tripled": lambda surface, run: (
        _value(surface, run) * Random(f"{surface.name} {run.cell.cell_id}").choice([1, 3])
    ),
}


def test_no_order_loses_the_answer_and_the_true_one_saves_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    surfaces = read_surfaces(TABLES_FOLDER)[::EVERY]
    drawn = fmean(race(surface, 0, Conditions()).share for surface in surfaces)
    shares = dict[str, float]()
    for name, order in ORDERS.items():
        played = []
        for surface in surfaces:

            def ordered(
                runs: Sequence[Run],
                suite: Suite,
                order: Callable[[Surface, Run], float] = order,
                of: Surface = surface,
            ) -> tuple[Job, ...]:
                jobs = share_jobs(runs, suite)
                return tuple(
                    replace(job, runs=tuple(sorted(job.runs, key=lambda run: order(of, run))))
                    for job in jobs
                )

            monkeypatch.setattr(race_lab, "share_jobs", ordered)
            played.append(race(surface, 0, Conditions()))
        assert all(played_race.regret <= 0.02 for played_race in played), name
        shares[name] = fmean(played_race.share for played_race in played) / drawn
    assert shares["true"] > 0.9, shares
    assert max(shares.values()) <= 1.5, shares
