"""``python -m tests.simulations.published_surfaces``: writes the surfaces of published tables into tests/data/surfaces.

Published are throughputs and times; how trials scatter and what starting a job takes were not, and are assumed.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from math import exp, log

from tests.simulations.response_surface import FOLDER, Surface, SurfaceCell, render, surface_document
from traindyno.core.suite.choices import GoalKind

VARIATION = 0.02
START_SECONDS, TRIAL_STEPS = 300, 200
EXAMPLES = 640_000
DEVICES = 8
P4D, TRN1 = "ml.p4d.24xlarge", "ml.trn1.32xlarge"
USD_PER_HOUR = {P4D: Decimal("37.69"), TRN1: Decimal("24.725")}
# Number of instances → samples per second of ALBERT with SMDDP, batch 16 and no loader workers.
ALBERT_RATES = {2: 3234.6, 4: 5436.9, 8: 8094.2, 16: 10814.1}
# What 12 loader workers add to it, by batch size and number of instances.
WORKERS_ADD = {16: {2: 0.1553, 4: 0.2398, 8: 0.4114, 16: 0.6037}, 32: {2: 0.2524, 4: 0.4089, 8: 0.6515, 16: 1.0216}}
# What SMDDP adds to DDP, with batch 16 and 12 loader workers.
SMDDP_ADDS = {2: 0.1396, 4: 0.3307, 8: 0.3494, 16: 0.3164}
# Assumed for the full matrix: the share of that gain at fewer workers, and what a batch of 32 adds at 12 workers.
SHARE_OF_GAIN = {0: 0.0, 4: 0.7, 8: 0.92, 12: 1.0, 16: 1.0}
LARGER_BATCH_ADDS = 0.12


def main() -> None:
    for surface in (albert_published(), albert_full(), trainium()):
        path = FOLDER / f"{surface.name}.json"
        path.write_text(render(surface_document(surface)), encoding="utf-8")


def albert_published() -> Surface:
    cells = [
        _albert_cell(nodes, strategy, workers, 16)
        for nodes in ALBERT_RATES
        for strategy, workers in (("smddp", 0), ("smddp", 12), ("ddp", 12))
    ]
    return _albert("albert-published", "published", "the twelve cells of the ALBERT post's tables", cells)


def albert_full() -> Surface:
    cells = [
        _albert_cell(nodes, strategy, workers, batch)
        for nodes in ALBERT_RATES
        for strategy in ("ddp", "smddp")
        for workers in SHARE_OF_GAIN
        for batch in WORKERS_ADD
    ]
    source = (
        "the matrix of the ALBERT post; cells that it does not state are interpolated "
        "(tests/simulations/published_surfaces.py)"
    )
    return _albert("albert-full", "interpolated", source, cells)


def _albert(name: str, origin: str, source: str, cells: list[SurfaceCell]) -> Surface:
    return Surface(
        name=name,
        origin=origin,
        source=source,
        goal=GoalKind.FASTEST,
        training={"instance": P4D, "precision": "bf16"},
        usd_per_hour={P4D: USD_PER_HOUR[P4D]},
        cells=tuple(cells),
    )


def _albert_cell(nodes: int, strategy: str, workers: int, batch: int) -> SurfaceCell:
    rate = ALBERT_RATES[nodes] * (1 + WORKERS_ADD[16][nodes])
    if batch != 16:
        rate *= 1 + LARGER_BATCH_ADDS
    rate *= exp(-(1 - SHARE_OF_GAIN[workers]) * log(1 + WORKERS_ADD[batch][nodes]))
    if strategy == "ddp":
        rate /= 1 + SMDDP_ADDS[nodes]
    return _cell(
        {"instance_count": nodes, "strategy": strategy, "loader_workers": workers, "batch_size_per_device": batch},
        seconds=EXAMPLES / rate,
        step_seconds=nodes * DEVICES * batch / rate,
    )


def trainium() -> Surface:
    """Billed seconds of the whole training, and steps per second."""
    published = {P4D: (6553, 5.44), TRN1: (6033, 6.64)}
    return Surface(
        name="trainium-pair",
        origin="published",
        source="the Trainium post: billable seconds, steps per second and prices of BERT on two instance types",
        goal=GoalKind.CHEAPEST,
        training={"precision": "bf16"},
        usd_per_hour=USD_PER_HOUR,
        cells=tuple(_trainium_cells(published)),
    )


def _trainium_cells(published: Mapping[str, tuple[float, float]]) -> Iterator[SurfaceCell]:
    for instance, (seconds, steps_per_second) in published.items():
        yield _cell({"instance": instance}, seconds=seconds, step_seconds=1 / steps_per_second)


def _cell(settings: Mapping[str, str | int], *, seconds: float, step_seconds: float) -> SurfaceCell:
    return SurfaceCell(
        settings=settings,
        seconds=round(seconds, 3),
        billable_seconds=round(START_SECONDS + TRIAL_STEPS * step_seconds, 1),
        variation=VARIATION,
    )


if __name__ == "__main__":
    main()
