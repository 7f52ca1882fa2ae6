"""Suites of equal cells, and of cells of known ratios, on recorded steps of this project's own
runs.

The level and the stalls of a machine are not independent from step to step or from run to run, so
that no formula draws them: successive runs are taken as they were recorded, whichever cell they are
played for.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from localcloud.home import REPO_ROOT
from tests.simulations.race_lab import Conditions, grid_seconds, played_value, race
from tests.simulations.response_surface import Surface, SurfaceCell
from tests.simulations.surface_lab import Played
from traindyno.core.suite.choices import GoalKind
from traindyno.core.verdict.verdict import Finding
from traindyno.figures.in_job.run_scatter import NONE_NEARER
from traindyno.figures.selection import Relation

FOLDER = REPO_ROOT / "tests" / "data" / "noise"
# The quickstart's on the machine of the first recording: a step of 17 ms, a job's and a run's
# start.
SECONDS = 133.0
BATCH = 16
JOB_START = 7.0
RUN_START = 0.6
THOUSANDTHS = 1000
FASTEST = "fastest"
NONE_NEAR = "none near"
EQUAL = "within the tolerance"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """The steps of recorded runs, ÷ the mean step of the recording without its highest 5 %."""

    runs: Sequence[Sequence[float]]

    def from_one_on(self, source: Random) -> Iterator[Sequence[float]]:
        """The runs in their order, from one that is drawn."""
        number = source.randrange(len(self.runs))
        while True:
            yield self.runs[number % len(self.runs)]
            number += 1


def read_recording(path: Path) -> Recording:
    document = json.loads(path.read_text(encoding="utf-8"))
    return Recording(runs=[[step / THOUSANDTHS for step in run] for run in document["runs"]])


def machine(ratios: Sequence[float]) -> Surface:
    """A cell of this machine for each ratio to the fastest one; nothing else differs."""
    cells = tuple(
        SurfaceCell(
            settings={"weight_decay": number / 100},
            seconds=SECONDS * ratio,
            billable_seconds=JOB_START,
        )
        for number, ratio in enumerate(ratios)
    )
    return Surface(
        name="recorded",
        origin="generated",
        source="",
        goal=GoalKind.FASTEST,
        training={"instance": "local.cpu", "batch_size_per_device": BATCH},
        cells=cells,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What suites of these cells said. ``false``: by kind of sentence; ``settled``: with the best
    cell, by a sentence that is true.
    """

    suites: int
    false: Counter[str]
    settled: int
    seconds: float

    @property
    def settled_share(self) -> float:
        return self.settled / self.suites

    def false_share(self, kind: str) -> float:
        return self.false[kind] / self.suites


def tell(recording: Recording, ratios: Sequence[float], suites: int) -> Told:
    """The cells are in another order in each suite."""
    false = Counter[str]()
    settled = 0
    seconds = 0.0
    for seed in range(suites):
        surface = machine(Random(seed).sample(ratios, len(ratios)))
        conditions = Conditions(
            hosts=0.0, cold=0.0, job_start=JOB_START, run_start=RUN_START, recording=recording
        )
        played = race(surface, seed, conditions)
        seconds += played.share * grid_seconds(surface, conditions)
        kind = kind_of(played)
        if kind is not None and is_false(surface, played):
            false[kind] += 1
        elif kind is not None:
            settled += 1
    return Told(suites=suites, false=false, settled=settled, seconds=seconds / suites)


def kind_of(played: Played) -> str | None:
    """Of the sentence that recommends a cell; None if none does."""
    return {
        Finding.RECOMMENDED: FASTEST,
        Finding.ONLY_ONE: NONE_NEAR,
        Finding.WITHIN_TOLERANCE: EQUAL,
    }.get(played.verdict.finding)


def is_false(surface: Surface, played: Played) -> bool:
    verdict = played.verdict
    own = played_value(surface, verdict.recommended)
    others = [
        played_value(surface, cell_id) for cell_id in {*surface.by_id} - {verdict.recommended}
    ]
    if verdict.finding is Finding.WITHIN_TOLERANCE:
        equal = [
            played_value(surface, rival.cell_id) for rival in verdict.related(Relation.EQUIVALENT)
        ]
        tolerance = 1 + verdict.tolerance
        return min(others) * tolerance < own or max(equal, default=own) > own * tolerance
    nearer = NONE_NEARER if verdict.finding is Finding.ONLY_ONE else 0.0
    return min(others) <= own * (1 + nearer)
