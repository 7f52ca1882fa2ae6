"""What the verdict finds on executions whose results are fixed: recorded noise, response surfaces,
simulated suites and races with long runs.

`tests/data/findings` holds each number of each finding, to twelve digits.
`TRAINDYNO_WRITE_FINDINGS=1 pytest tests/unit/core/verdict/test_findings.py` writes them anew, for a
change that means to change figures.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from localcloud.home import REPO_ROOT
from tests.simulations import test_confirm
from tests.simulations.race_lab import Conditions, measure_grid, race
from tests.simulations.recorded_noise import FOLDER as NOISE
from tests.simulations.recorded_noise import JOB_START, RUN_START, machine, read_recording
from tests.simulations.response_surface import Surface, read_surfaces
from tests.simulations.shared_suites import Sharing, play_shared
from tests.simulations.suites.figures import Row
from tests.simulations.suites.play import LEVELS
from tests.simulations.suites.rows import ROWS
from traindyno.core.suite.suite import Confirm
from traindyno.core.verdict.cell_row import CellQuality
from traindyno.core.verdict.verdict import Verdict, verdict_document

FOLDER = REPO_ROOT / "tests" / "data" / "findings"
DIGITS = 12
RATIOS = ((1.0, 1.0), (1.0, 1.0, 2.1), (1.0, 1.03, 2.1), (1.0, 1.3), (1.0, 1.05, 1.1, 1.4))
SEEDS = 2
SHARED = {
    "shared jobs": Sharing(levels=LEVELS, trials=4),
    "shared jobs of three runs": Sharing(levels=LEVELS, trials=3, part=3),
    "shared jobs on unknown hosts": Sharing(levels=LEVELS, trials=4, are_hosts_known=False),
    "jobs of two types": Sharing(levels=LEVELS, trials=5, groups=2),
}
HIDDEN = {
    "throttled": (test_confirm.throttled, 1.05),
    "a long checkpoint": (test_confirm.rarely_long_checkpoint, 1.03),
    "plain": (test_confirm.plain, 1.05),
}
# Of a finding with many cells, those that the answer names.
MOST_ROWS = 6
MOST_CELLS_OF_GRID = 12
# The figures of a cell that trials give; what else a row says is not the method's.
ROW = (
    "trials",
    "samples_per_second",
    "tokens_per_second",
    "steps_per_second",
    "seconds",
    "usd",
    "instance_hours",
    "billable_seconds",
    "prediction",
    "least_behind",
    "time",
    "steadiness",
)
HOSTS = ("spread", "draws", "hazard_width")
VERDICT = (
    "metric",
    "significance",
    "finding",
    "recommended",
    "to_decide",
    "against_baseline",
    "refused",
    "sensitivity",
    "dropped",
    "scatter",
    "level",
)
Play = Callable[[], Verdict]


def _raced(surface: Surface, seed: int, conditions: Conditions) -> Verdict:
    return race(surface, seed, conditions).verdict


def _measured(surface: Surface, conditions: Conditions) -> Verdict:
    return measure_grid(surface, 0, conditions).verdict


def _of_row(row: Row) -> Verdict:
    return row.play(row.name, 0).verdict


def _of_shared_jobs(sharing: Sharing, name: str, number: int) -> Verdict:
    return play_shared(sharing, name, number).verdict


def recorded() -> Iterator[tuple[str, Play]]:
    """Races of cells of these ratios, in the noise that was recorded."""
    for name in ("quiet", "loaded"):
        conditions = Conditions(
            hosts=0.0,
            cold=0.0,
            job_start=JOB_START,
            run_start=RUN_START,
            recording=read_recording(NOISE / f"{name}.json"),
        )
        for ratios, seed in product(RATIOS, range(SEEDS)):
            yield f"{name} {ratios} {seed}", partial(_raced, machine(ratios), seed, conditions)


def surfaces() -> Iterator[tuple[str, Play]]:
    """A race on each surface, and a grid on the small ones."""
    for surface in read_surfaces():
        for seed in range(SEEDS):
            yield f"{surface.name} {seed}", partial(_raced, surface, seed, Conditions())
        if len(surface.cells) <= MOST_CELLS_OF_GRID:
            yield f"{surface.name} grid", partial(_measured, surface, Conditions())


def suites() -> Iterator[tuple[str, Play]]:
    """One suite of each row of the simulations, among them spot, faults and times to a quality."""
    for row in ROWS:
        yield row.name, partial(_of_row, row)


def shared_jobs() -> Iterator[tuple[str, Play]]:
    for (name, sharing), number in product(SHARED.items(), range(SEEDS)):
        yield f"{name} {number}", partial(_of_shared_jobs, sharing, name, number)


def long_runs() -> Iterator[tuple[str, Play]]:
    """Races whose two leaders run once more, for longer."""
    for (name, (hidden, other)), minutes in product(HIDDEN.items(), (None, 20)):
        confirm = Confirm(minutes=minutes) if minutes else None
        yield (
            f"{name} {minutes}",
            partial(test_confirm.race, hidden, other=other, confirm=confirm, seed=0),
        )


PLAYED: Mapping[str, Callable[[], Iterator[tuple[str, Play]]]] = {
    "recorded": recorded,
    "surfaces": surfaces,
    "suites": suites,
    "shared_jobs": shared_jobs,
    "long_runs": long_runs,
}


def numbers_of(verdict: Verdict) -> dict[str, Any]:
    """The figures of the finding as a document, without what is unknown; numbers to twelve
    digits.
    """
    document = verdict_document(verdict)
    named = [verdict.recommended, *(rival.cell_id for rival in verdict.rivals)]
    rows = document["rows"]
    if len(rows) > MOST_ROWS:
        rows = [row for row in rows if row["cell_id"] in named[:MOST_ROWS]]
    finding = {name: document[name] for name in VERDICT}
    finding["rivals"] = {rival["cell_id"]: rival for rival in document["rivals"][:MOST_ROWS]}
    by_cell = {row["cell_id"]: _row(row) for row in rows}
    finding["expected"] = by_cell.pop(verdict.recommended, None)
    finding["rows"] = by_cell
    return dict(_rounded(finding))


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    quality = [part for part in row["parts"] if part["kind"] == CellQuality.kind]
    return {
        **{name: row[name] for name in ROW},
        "hosts": {name: row["hosts"][name] for name in HOSTS},
        "quality": quality,
    }


def _rounded(value: Any) -> Any:
    if isinstance(value, Mapping):
        known = {name: _rounded(part) for name, part in value.items() if name != "cell_id"}
        return {name: part for name, part in known.items() if part not in (None, {}, [])}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_rounded(part) for part in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def write(name: str, findings: Mapping[str, Any]) -> None:
    """One finding a line."""
    lines = [
        f"{json.dumps(play)}: {json.dumps(finding, sort_keys=True, separators=(',', ':'))}"
        for play, finding in findings.items()
    ]
    (FOLDER / f"{name}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def read(name: str) -> dict[str, Any]:
    return dict(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
