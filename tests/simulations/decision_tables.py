"""The tables on decisions."""

from collections.abc import Iterator

from tests.simulations.decisions import further_trials, measure_coverage, simulate, wrong_with_looks
from tests.simulations.noise_models import (
    Shape,
    correlated_in_cells,
    correlated_in_time,
    independent,
    noisy_leader,
    own_hosts,
    shared_hosts,
    unequal_spreads,
)
from tests.simulations.repetitions import percent
from tests.simulations.test_decisions import CELLS, FIVE_PERCENT, TOLERANCE

TRIALS = 5
MODELS = {
    "independent trials, CV 2 %": independent,
    "each cell on one host, hosts' CV 2 %": own_hosts,
    "all cells on the same three hosts": shared_hosts,
    "speed drifts from run to run (AR 0.7), order drawn by the lab": correlated_in_time,
    "trials resemble the one before in their cell only (AR 0.7)": correlated_in_cells,
    "spreads of 1 to 5 %": unequal_spreads,
    "one cell scatters by 5 %, the others by 1 %": noisy_leader,
}


def false_claims() -> Iterator[list[str]]:
    yield ["false claims, 5 trials", *(f"{cells} cells" for cells in CELLS)]
    for name, model in MODELS.items():
        shares = (
            simulate(model, Shape(levels=(0.0,) * cells, trials=TRIALS)).wrong.share
            for cells in CELLS
        )
        yield [f"equal cells; {name}", *map(percent, shares)]
    shapes = (Shape(levels=(0.0, *[TOLERANCE] * (cells - 1)), trials=TRIALS) for cells in CELLS)
    yield [
        "one cell better by just the tolerance",
        *(percent(simulate(independent, shape).wrong.share) for shape in shapes),
    ]
    looks = (wrong_with_looks(independent, cells, 9).share for cells in CELLS[:2])
    yield ["race: equal cells, 9 trials, four looks", *map(percent, looks), "–"]


def power() -> Iterator[list[str]]:
    yield ["a lead of 5 %, CV 2 %", *(f"{cells} cells" for cells in CELLS)]
    for trials in (3, 4, 5, 6, 8):
        outcomes = [
            simulate(independent, Shape(levels=_led(cells), trials=trials)) for cells in CELLS
        ]
        yield [
            f"{trials} trials: recommended",
            *(percent(outcome.decided.share) for outcome in outcomes),
        ]
        yield [
            f"{trials} trials: said to beat each other cell",
            *(percent(outcome.superior.share) for outcome in outcomes),
        ]
    yield [
        "the trials named after 3: recommended",
        *(percent(further_trials(cells, 3).share) for cells in CELLS),
    ]


def coverage() -> Iterator[list[str]]:
    yield ["95 % intervals that hold the truth, 5 trials", *(f"{cells} cells" for cells in CELLS)]
    for name, lead in (("equal cells", 0.0), ("a lead of 5 %", FIVE_PERCENT)):
        covers = [measure_coverage((0.0, *[lead] * (cells - 1)), TRIALS) for cells in CELLS]
        yield [
            f"{name}: the recommended cell's figure",
            *(percent(covered.expected.share) for covered in covers),
        ]
        yield [
            f"{name}: its ratio to the baseline",
            *(percent(covered.against_baseline.share) for covered in covers),
        ]


def _led(cells: int) -> tuple[float, ...]:
    return (0.0, *[FIVE_PERCENT] * (cells - 1))
