"""The race against the grid, successive halving, Syne Tune's ASHA and random search, on the surfaces of
tests/data/surfaces.

All are played in jobs with the same costs. Where cells differ in their instances, each is alone in its job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean, median

from bench.asha import is_installed, search_by_asha
from bench.figures import Budget, Figure, Section, Spread, at_least, at_most
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
#: Of a job's hosts.
HOSTS = (0.0, 0.01, 0.03)
SUITES = 2
HALVES, MOST_ON_A_HALF = 200, 8.5
SHORT_START = 20.0
GROUPS = ("large models", "2 to 8 GPUs, by time", "2 to 8 GPUs, by cost", "own surfaces")
#: %, by the noise of a run
MOST_OF_GROUP = {0.003: 7.0, 0.01: 7.0, 0.03: 8.0}
MOST_WITH_SHORT_START, MOST_WRONG = 5.5, 1.0
LEAST_WITHIN = {0.003: 99.0, 0.01: 99.0, 0.03: 97.0}
#: Of a suite over instance types only.
FEWEST_TYPES, MOST_OF_A_SURFACE = 4, 6

NOTES = (
    f"{SUITES} suites of each surface and condition, nine trials at most, played with the lab's own rounds, jobs and"
    " verdict. A job's start takes 300 s and a run's 45 s, each billed; the grid has five trials, each in a job of its"
    " own. Steps scatter by 2 %. The first run of a job is slower by 10 %; the race begins a job with a throw-away run."
    " Shares are of the grid's billable seconds of all instances, the verdict's tests included.",
    "Hosts differ by 0, 1 and 3 % for the figures of a noise. Their shares are the median of these, with the least"
    " and the most; all other figures have 1 %.",
    "All surfaces of tests/data/surfaces are used; its README says where they are from. Large models: those of the"
    " ultra-scale playbook, and vTrain's of 3.6B and more. Instance types only: sections of this project's surfaces in"
    " which each cell has another type or number of instances, so that no two cells share a job; at most"
    f" {MOST_OF_A_SURFACE} sections of each surface.",
    f"Halves: {HALVES} halves of the surfaces, drawn with a seed.",
    "Successive halving (a third goes on to three times as many steps), ASHA (Syne Tune 0.16.0, same factor, same first"
    " look, each cell once, in random order) and random search select by one run and make no claim; ASHA and random"
    " search spend what the race spends. Within 2 %: of the best cell of the surface.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raced:
    surface: Surface
    played: Played


def measure(*, is_quick: bool) -> Section:
    tables, own = read_surfaces(TABLES_FOLDER), read_surfaces()
    surfaces = [*tables[::QUICK_EVERY], *own[::QUICK_EVERY]] if is_quick else [*tables, *own]
    usual = Conditions(noise=USUAL)
    raced = {
        (noise, hosts): race_all(surfaces, Conditions(noise=noise, hosts=hosts)) for noise in NOISES for hosts in HOSTS
    }
    short = race_all(surfaces, replace(usual, run_start=SHORT_START))
    return Section(
        title=TITLES["search"],
        command=command("search"),
        figures=(
            *(figure for noise in NOISES for figure in noise_figures(noise, [raced[noise, hosts] for hosts in HOSTS])),
            *half_figures(raced[USUAL, usual.hosts]),
            *group_figures([short], f"a run's start of {SHORT_START:g} s", most=MOST_WITH_SHORT_START),
            *type_figures([section for surface in own for section in sections(surface)][:: 9 if is_quick else 1]),
            *other_figures(raced[USUAL, usual.hosts], usual),
        ),
        notes=NOTES,
    )


def race_all(surfaces: Sequence[Surface], conditions: Conditions) -> list[Raced]:
    return [
        Raced(surface=surface, played=race(surface, seed, conditions))
        for surface in surfaces
        for seed in range(1, SUITES + 1)
    ]


def noise_figures(noise: float, by_hosts: Sequence[Sequence[Raced]]) -> Iterator[Figure]:
    """``by_hosts``: for each spread of the hosts."""
    name, together = f"noise {100 * noise:g} %", [each for raced in by_hosts for each in raced]
    yield from group_figures(by_hosts, name, most=MOST_OF_GROUP[noise])
    yield _within(f"race, {name}", [each.played.regret for each in together], budget=at_least(LEAST_WITHIN[noise]))
    yield Figure(
        name=f"race, {name}: suites that say wrongly that a cell beats each other one, of {len(together)}",
        value=100 * sum(claims_too_much(each.surface, each.played) for each in together) / len(together),
        unit="%",
        budget=at_most(MOST_WRONG),
    )


def group_figures(conditions: Sequence[Sequence[Raced]], name: str, *, most: float) -> Iterator[Figure]:
    """The median over ``conditions`` of each group's median."""
    for group in GROUPS:
        of_group = [[each for each in raced if group_of(each.surface) == group] for raced in conditions]
        count = len({each.surface.name for each in of_group[0]})
        yield Figure(
            name=f"race, {name}, {group}: billable seconds ÷ the grid's, median over {count} surfaces",
            value=_together([_median(raced) for raced in of_group]) if count else None,
            unit="%",
            budget=at_most(most),
        )


def _together(medians: Sequence[float]) -> float | Spread:
    if len(medians) == 1:
        return medians[0]
    return Spread(median=median(medians), least=min(medians), most=max(medians), count=len(medians))


def half_figures(raced: Sequence[Raced]) -> Iterator[Figure]:
    name = f"race, noise {100 * USUAL:g} %, worst median of {HALVES} random halves"
    yield Figure(name=f"{name} of all surfaces", value=worst_half(raced), unit="%", budget=at_most(MOST_ON_A_HALF))
    for group in GROUPS:
        of_group = [each for each in raced if group_of(each.surface) == group]
        yield Figure(name=f"{name} of {group}", value=worst_half(of_group) if of_group else None, unit="%")


def worst_half(raced: Sequence[Raced]) -> float:
    """The largest median share, in %."""
    names = sorted({each.surface.name for each in raced})
    halves = [set(Random(f"half {seed}").sample(names, -(-len(names) // 2))) for seed in range(HALVES)]
    return max(_median([each for each in raced if each.surface.name in half]) for half in halves)


def type_figures(surfaces: Sequence[Surface]) -> Iterator[Figure]:
    raced = race_all(surfaces, Conditions(noise=USUAL))
    yield Figure(
        name=f"race, instance types only: billable seconds ÷ the grid's, median over {len(raced)} sections",
        value=100 * median(each.played.share for each in raced),
        unit="%",
    )
    yield _within("race, instance types only", [each.played.regret for each in raced])


def other_figures(raced: Sequence[Raced], conditions: Conditions) -> Iterator[Figure]:
    surfaces = [each.surface for each in raced[::SUITES]]
    halved = [halve(surface, 1, conditions) for surface in surfaces]
    yield Figure(name="race: billable seconds ÷ the grid's, median over all surfaces", value=_median(raced), unit="%")
    yield Figure(
        name="successive halving: billable seconds ÷ the grid's, median over all surfaces",
        value=100 * median(share for share, _ in halved),
        unit="%",
    )
    yield _within("successive halving", [regret for _, regret in halved])
    shares = [each.played.share for each in raced[::SUITES]]
    yield _asha_figure(surfaces, shares, conditions)
    drawn = [sample(surface, 1, conditions, share=share) for surface, share in zip(surfaces, shares, strict=True)]
    yield _within("random search", drawn)
    yield _within("grid", [measure_grid(surface, 1, conditions).regret for surface in surfaces])


def _asha_figure(surfaces: Sequence[Surface], shares: Sequence[float], conditions: Conditions) -> Figure:
    """Without a value where Syne Tune is not installed."""
    pairs = zip(surfaces, shares, strict=True) if is_installed() else ()
    return _within("ASHA of Syne Tune", [search_by_asha(each, 1, conditions, share=share) for each, share in pairs])


def _median(raced: Sequence[Raced]) -> float:
    return 100 * median(each.played.share for each in raced)


def _within(name: str, regrets: Sequence[float], budget: Budget | None = None) -> Figure:
    """Without a value where none was played."""
    share = 100 * fmean(regret <= TOLERANCE for regret in regrets) if regrets else None
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
