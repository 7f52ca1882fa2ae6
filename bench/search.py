"""The race against the grid, successive halving and random search, on the surfaces of tests/data/surfaces.

All are played in jobs with the same costs. Where cells differ in their instances, each is alone in its job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import median

from bench.figures import Budget, Figure, Section, at_least, at_most
from bench.groups import TITLES, command
from tests.simulations.other_races import halve, sample
from tests.simulations.race_lab import Conditions, claims_too_much, measure_grid, race
from tests.simulations.response_surface import TABLES_FOLDER, Surface, read_surfaces
from tests.simulations.surface_lab import Played
from traindyno.core.suite.choices import GoalKind

TOLERANCE = 0.02
QUICK_EVERY = 9
#: Standard deviations of a run's level.
NOISES, USUAL = (0.003, 0.01, 0.03), 0.01
SHORT_START = 20.0
GROUPS = ("large models", "2 to 8 GPUs, by time", "2 to 8 GPUs, by cost", "own surfaces")
#: %, by the noise of a run
MOST_OF_GROUP = {0.003: 7.0, 0.01: 7.0, 0.03: 8.0}
MOST_WITH_SHORT_START, MOST_WRONG = 5.5, 1.0
LEAST_WITHIN = {0.003: 99.0, 0.01: 99.0, 0.03: 97.0}
#: Of a suite over instance types only.
FEWEST_TYPES, MOST_OF_A_SURFACE = 4, 6

NOTES = (
    "One suite of each surface and condition, nine trials at most, played with the lab's own rounds, jobs and verdict."
    " A job's start takes 300 s and a run's 45 s, each billed; the grid has five trials, each in a job of its own."
    " Steps scatter by 2 %, hosts by 1 %. The first run of a job is slower by 10 %; the race begins a job with a"
    " throw-away run. Shares are of the grid's billable seconds of all instances, the verdict's tests included.",
    "All surfaces of tests/data/surfaces are used; its README says where they are from. Large models: those of the"
    " ultra-scale playbook, and vTrain's of 3.6B and more. Instance types only: sections of this project's surfaces in"
    " which each cell has another type or number of instances, so that no two cells share a job; at most"
    f" {MOST_OF_A_SURFACE} sections of each surface.",
    "Successive halving (a third goes on to three times as many steps) and random search select by one run and make no"
    " claim; random search spends what the race spends. Within 2 %: of the best cell of the surface.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raced:
    surface: Surface
    played: Played


def measure(*, is_quick: bool) -> Section:
    tables, own = read_surfaces(TABLES_FOLDER), read_surfaces()
    surfaces = [*tables[::QUICK_EVERY], *own[::QUICK_EVERY]] if is_quick else [*tables, *own]
    usual = Conditions(noise=USUAL)
    return Section(
        title=TITLES["search"],
        command=command("search"),
        figures=(
            *(figure for noise in NOISES for figure in noise_figures(surfaces, noise)),
            *group_figures(
                race_all(surfaces, replace(usual, run_start=SHORT_START)),
                f"a run's start of {SHORT_START:g} s",
                most=MOST_WITH_SHORT_START,
            ),
            *type_figures([section for surface in own for section in sections(surface)][:: 9 if is_quick else 1]),
            *other_figures(surfaces, usual),
        ),
        notes=NOTES,
    )


def race_all(surfaces: Sequence[Surface], conditions: Conditions) -> list[Raced]:
    return [Raced(surface=surface, played=race(surface, 1, conditions)) for surface in surfaces]


def noise_figures(surfaces: Sequence[Surface], noise: float) -> Iterator[Figure]:
    raced, name = race_all(surfaces, Conditions(noise=noise)), f"noise {100 * noise:g} %"
    yield from group_figures(raced, name, most=MOST_OF_GROUP[noise])
    yield _within(f"race, {name}", [each.played.regret for each in raced], budget=at_least(LEAST_WITHIN[noise]))
    yield Figure(
        name=f"race, {name}: suites that say wrongly that a cell beats each other one",
        value=100 * sum(claims_too_much(each.surface, each.played) for each in raced) / len(raced),
        unit="%",
        budget=at_most(MOST_WRONG),
    )


def group_figures(raced: Sequence[Raced], name: str, *, most: float) -> Iterator[Figure]:
    for group in GROUPS:
        shares = [each.played.share for each in raced if group_of(each.surface) == group]
        yield Figure(
            name=f"race, {name}, {group}: billable seconds ÷ the grid's, median over {len(shares)} surfaces",
            value=100 * median(shares) if shares else None,
            unit="%",
            budget=at_most(most),
        )


def type_figures(surfaces: Sequence[Surface]) -> Iterator[Figure]:
    raced = race_all(surfaces, Conditions(noise=USUAL))
    yield Figure(
        name=f"race, instance types only: billable seconds ÷ the grid's, median over {len(raced)} sections",
        value=100 * median(each.played.share for each in raced),
        unit="%",
    )
    yield _within("race, instance types only", [each.played.regret for each in raced])


def other_figures(surfaces: Sequence[Surface], conditions: Conditions) -> Iterator[Figure]:
    raced = race_all(surfaces, conditions)
    halved = [halve(surface, 1, conditions) for surface in surfaces]
    yield Figure(name="race: billable seconds ÷ the grid's, median over all surfaces", value=_median(raced), unit="%")
    yield Figure(
        name="successive halving: billable seconds ÷ the grid's, median over all surfaces",
        value=100 * median(share for share, _ in halved),
        unit="%",
    )
    yield _within("successive halving", [regret for _, regret in halved])
    drawn = [sample(each.surface, 1, conditions, share=each.played.share) for each in raced]
    yield _within("random search", drawn)
    yield _within("grid", [measure_grid(surface, 1, conditions).regret for surface in surfaces])


def _median(raced: Sequence[Raced]) -> float:
    return 100 * median(each.played.share for each in raced)


def _within(name: str, regrets: Sequence[float], budget: Budget | None = None) -> Figure:
    share = 100 * sum(regret <= TOLERANCE for regret in regrets) / len(regrets)
    return Figure(name=f"{name}: suites whose cell is within 2 % of the best", value=share, unit="%", budget=budget)


def group_of(surface: Surface) -> str:
    if not surface.is_of_table:
        return GROUPS[3]
    if not surface.name.startswith("vtrain-h1024"):
        return GROUPS[0]
    return GROUPS[1] if surface.goal is GoalKind.FASTEST else GROUPS[2]


def sections(surface: Surface) -> list[Surface]:
    """Surfaces whose cells differ in their instances only, evenly chosen."""
    alike: dict[str, list[int]] = {}
    for index, cell in enumerate(surface.cells):
        settings = {name: value for name, value in cell.settings.items() if name not in ("instance", "instance_count")}
        alike.setdefault(repr(sorted(settings.items())), []).append(index)
    found = [
        replace(surface, name=f"{surface.name} {key}", cells=tuple(surface.cells[index] for index in alike[key]))
        for key in sorted(alike)
    ]
    useful = [
        each
        for each in found
        if len(each.cells) >= FEWEST_TYPES and sum(cell.seconds is not None for cell in each.cells) > 1
    ]
    return useful[:: max(1, len(useful) // MOST_OF_A_SURFACE)][:MOST_OF_A_SURFACE]
