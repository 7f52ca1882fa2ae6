"""The searches against the grid and random search, on the surfaces of tests/data/surfaces.

The race is played in shared jobs, on the surfaces of published tables too.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from bench.figures import Budget, Figure, Section, at_least, at_most
from bench.groups import TITLES, command
from tests.simulations.other_races import halve, sample
from tests.simulations.race_lab import Conditions, race
from tests.simulations.response_surface import TABLES_FOLDER, Surface, read_surfaces
from tests.simulations.surface_lab import Played, play, play_random
from traindyno.core.suite.choices import GoalKind, Search

SHARE_OF_GRID, SHARE_WITHIN = 0.15, 0.9
TOLERANCE = 0.02
# Suites of each surface: players that draw at random vary more and play more.
SUITES, FEW_SUITES = 4, 1
FEW_CELLS = 30
QUICK_EVERY = 9
MODEL = "search by a model"
NOTE = (
    f"Suites of five trials per cell and a tolerance of 2 %: {SUITES} of each surface for the search by a model and"
    f" random search, {FEW_SUITES} for the others. They are played with the lab's own rounds and verdict; trials are"
    " drawn from the surface. Billable seconds are those of all instances. Random search measures cells drawn at"
    " random, five times each, for 15 % of the grid's billable seconds. A median over surfaces is the median of the"
    " surfaces' medians. The share of suites gives each surface the same weight. All surfaces of"
    " tests/data/surfaces are used; its README says where they are from."
)

RACE_NOTE = (
    "In shared jobs a job's start takes 300 s and a run's 45 s, each billed; the grid has a job for each of its five"
    " trials. Runs scatter by 1 %, steps by 2 %, and hosts differ by 1 %. The first run of a job is slower by 10 %; for"
    " the race it does not count. Large models: those of the ultra-scale playbook, and vTrain's of 3.6B and more."
    " Random search and successive halving (a third goes on to three times as many steps) select by one run and make no"
    " claim; random search spends what the race spends."
)
GROUPS = ("large models", "2 to 8 GPUs, by time", "2 to 8 GPUs, by cost", "own surfaces")
MOST_OF_GROUP, LEAST_WITHIN = 7.0, 99.0

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
        figures=(
            *(figure for name, each in found.items() for figure in figures(name, each, has_budget=name == MODEL)),
            *race_figures([*read_surfaces(TABLES_FOLDER)[:: QUICK_EVERY if is_quick else 1], *surfaces]),
        ),
        notes=(NOTE, RACE_NOTE, *map(surface_text, found[MODEL])),
    )


def race_figures(surfaces: Sequence[Surface]) -> Iterator[Figure]:
    conditions = Conditions()
    raced = [(surface, race(surface, 1, conditions)) for surface in surfaces]
    for name in GROUPS:
        shares = [played.share for surface, played in raced if group_of(surface) == name]
        yield Figure(
            name=f"race, {name}: billable seconds ÷ the grid's, median over {len(shares)} surfaces",
            value=100 * median(shares),
            unit="%",
            budget=at_most(MOST_OF_GROUP),
        )
    halved = [halve(surface, 1, conditions) for surface in surfaces]
    drawn = [sample(surface, 1, conditions, share=played.share) for surface, played in raced]
    yield _within("race", [played.regret for _, played in raced], budget=at_least(LEAST_WITHIN))
    yield Figure(
        name="successive halving: billable seconds ÷ the grid's, median over surfaces",
        value=100 * median(share for share, _ in halved),
        unit="%",
    )
    yield _within("successive halving", [regret for _, regret in halved])
    yield _within("random search in shared jobs", drawn)


def _within(name: str, regrets: Sequence[float], budget: Budget | None = None) -> Figure:
    share = 100 * sum(regret <= TOLERANCE for regret in regrets) / len(regrets)
    return Figure(name=f"{name}: suites whose cell is within 2 % of the best", value=share, unit="%", budget=budget)


def group_of(surface: Surface) -> str:
    if not surface.is_of_table:
        return GROUPS[3]
    if not surface.name.startswith("vtrain-h1024"):
        return GROUPS[0]
    return GROUPS[1] if surface.goal is GoalKind.FASTEST else GROUPS[2]


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
