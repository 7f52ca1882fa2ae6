"""The search by a model against the grid, elimination and random search, on the surfaces of tests/data/surfaces."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from bench.figures import Figure, Section, at_least, at_most
from bench.groups import TITLES, command
from tests.simulations.response_surface import Surface, read_surfaces
from tests.simulations.surface_lab import Played, play, play_random
from traindyno.core.suite.choices import Search

SHARE_OF_GRID, SHARE_WITHIN = 0.15, 0.9
TOLERANCE = 0.02
# Suites of each surface: players that draw at random vary more and play more.
SUITES, FEW_SUITES = 4, 1
FEW_CELLS = 30
MODEL = "search by a model"
NOTE = (
    f"Suites of five trials per cell and a tolerance of 2 %: {SUITES} of each surface for the search by a model and"
    f" random search, {FEW_SUITES} for the others. They are played with the lab's own rounds and verdict; trials are"
    " drawn from the surface. Billable seconds are those of all instances. Random search measures cells drawn at"
    " random, five times each, for 15 % of the grid's billable seconds. A median over surfaces is the median of the"
    " surfaces' medians. The share of suites gives each surface the same weight. All surfaces of"
    " tests/data/surfaces are used; its README says where they are from."
)

Player = Callable[[Surface, int], Played]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Medians over the suites of one surface, and the share of suites that end within 2 % of the best cell."""

    surface: str
    cells: int
    share: float
    runs: float
    rounds: float
    regret: float
    within: float


def measure(*, is_quick: bool) -> Section:
    surfaces = [each for each in read_surfaces() if not is_quick or len(each.cells) < FEW_CELLS]
    found = {
        name: [find(surface, player, 1 if is_quick else suites) for surface in surfaces]
        for name, (player, suites) in PLAYERS.items()
    }
    return Section(
        title=TITLES["search"],
        command=command("search"),
        figures=tuple(
            figure for name, each in found.items() for figure in figures(name, each, has_budget=name == MODEL)
        ),
        notes=(NOTE, *map(surface_text, found[MODEL])),
    )


def play_model(surface: Surface, seed: int) -> Played:
    return play(surface, Search.MODEL, seed)


def play_random_search(surface: Surface, seed: int) -> Played:
    return play_random(surface, seed, share=SHARE_OF_GRID)


def play_elimination(surface: Surface, seed: int) -> Played:
    return play(surface, Search.ELIMINATE, seed)


def play_grid(surface: Surface, seed: int) -> Played:
    return play(surface, Search.GRID, seed)


PLAYERS: dict[str, tuple[Player, int]] = {
    MODEL: (play_model, SUITES),
    "random search": (play_random_search, SUITES),
    "elimination": (play_elimination, FEW_SUITES),
    "grid": (play_grid, FEW_SUITES),
}


def find(surface: Surface, player: Player, suites: int) -> Found:
    played = [player(surface, seed) for seed in range(1, suites + 1)]
    return Found(
        surface=surface.name,
        cells=len(surface.cells),
        share=median(each.share for each in played),
        runs=median(each.runs for each in played),
        rounds=median(each.rounds for each in played),
        regret=median(each.regret for each in played),
        within=sum(each.regret <= TOLERANCE for each in played) / len(played),
    )


def figures(name: str, found: Sequence[Found], *, has_budget: bool) -> tuple[Figure, ...]:
    return (
        Figure(
            name=f"{name}: billable seconds ÷ the grid's, median over surfaces",
            value=100 * median(each.share for each in found),
            unit="%",
            budget=at_most(100 * SHARE_OF_GRID) if has_budget else None,
        ),
        Figure(
            name=f"{name}: suites whose cell is within 2 % of the best",
            value=100 * sum(each.within for each in found) / len(found),
            unit="%",
            budget=at_least(100 * SHARE_WITHIN) if has_budget else None,
        ),
        Figure(
            name=f"{name}: median regret on the worst surface",
            value=100 * max(each.regret for each in found),
            unit="%",
        ),
    )


def surface_text(found: Found) -> str:
    spent = (
        f"{100 * found.share:.1f} % of the grid's billable seconds in {found.runs:g} runs and {found.rounds:g} rounds"
    )
    return f"{found.surface}, {found.cells} cells: {spent}; {100 * found.within:.0f} % of suites within 2 %."
