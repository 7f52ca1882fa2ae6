"""The race against the grid, successive halving, Syne Tune's ASHA and random search, on the
surfaces of tests/data/surfaces.

All are played in jobs with the same costs. Where cells differ in their instances, each is alone in
its job.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from bench.asha import is_installed, search_by_asha
from bench.figures import Budget, Figure, Section, at_least, at_most, spread
from bench.groups import TITLES, command
from tests.simulations.other_races import halve, sample
from tests.simulations.race_lab import (
    BILL,
    Conditions,
    claims_too_much,
    grid_seconds,
    measure_grid,
    race,
    says_none_near_wrongly,
    shared_grid_seconds,
)
from tests.simulations.response_surface import TABLES_FOLDER, Surface, read_surfaces
from tests.simulations.surface_lab import Played
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.suite.choices import GoalKind

TOLERANCE = 0.02
QUICK_EVERY = 9
#: Standard deviations of a run's level.
NOISES = (0.003, 0.01, 0.03)
USUAL = 0.01
#: By how much the hosts of a job differ.
HOSTS = (0.0, 0.01, 0.03)
SUITES = 2
#: Seconds of a run's start, and the most of the grid in %.
RUN_STARTS = {12.7: None, 5.0: 4.0}
THIS_MACHINE = "own surfaces of a shared machine"
GROUPS = (
    "large models",
    "one composed table, by time",
    "one composed table, by cost",
    "own surfaces on AWS",
    THIS_MACHINE,
)
#: %
MOST_OF_GROUP = 6.5
MOST_WRONG = 1.0
MOST_FALSE_NONE_NEAR = {0.003: 5.0, 0.01: 5.0, 0.03: None}
LEAST_WITHIN = {0.003: 99.0, 0.01: 99.0, 0.03: 97.0}
#: The least types of a suite over instance types only.
FEWEST_TYPES = 4
MOST_OF_A_SURFACE = 6

NOTES = (
    f"{SUITES} suites of each surface and condition, nine trials at most, played with the lab's "
    "own rounds, jobs, rule for early ends and verdict. A job's start takes 300 s and a run's 45 "
    "s (assumed, as of a script), each billed; a race's run has 20 steps, or 2 s of them. The grid "
    "has five trials of 20 to 100 steps, each in its own job. Steps scatter by 2 %. The first run "
    "of a job is slower by 10 %; the race begins a job with a throw-away run. Shares are of the "
    "grid's billable seconds of all instances, the verdict's tests included.",
    "Hosts differ by 0, 1 and 3 % for the figures of a noise; all other figures have 1 %. Least "
    "and most are those of a surface.",
    "All surfaces of tests/data/surfaces are used; its README says where they are from. Large "
    "models: those of the ultra-scale playbook, which were measured, and vTrain's of 3.6B and "
    "more. One composed table: vTrain's of one node, 56 of the 86 surfaces, which its authors "
    "computed from few measured parts; count it as one family. Instance types only: sections of "
    "this project's surfaces in which each cell has another type or number of instances, so that "
    f"no two cells share a job; at most {MOST_OF_A_SURFACE} sections of each surface.",
    "Successive halving (a third goes on to three times as many steps), ASHA (Syne Tune 0.16.0, "
    "same factor, same first look, each cell once, in random order) and random search select by "
    "one run and make no claim; ASHA and random search spend what the race spends. Within 2 %: "
    "of the best cell of the surface.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Raced:
    surface: Surface
    played: Played


def measure(*, is_quick: bool) -> Section:
    tables = read_surfaces(TABLES_FOLDER)
    measured = read_surfaces()
    surfaces = (
        [*tables[::QUICK_EVERY], *measured[::QUICK_EVERY]] if is_quick else [*tables, *measured]
    )
    usual = Conditions(noise=USUAL)
    raced = {
        (noise, hosts): race_all(surfaces, Conditions(noise=noise, hosts=hosts))
        for noise in NOISES
        for hosts in HOSTS
    }
    by_noise = [(noise, [raced[noise, hosts] for hosts in HOSTS]) for noise in NOISES]
    short = {start: race_all(surfaces, replace(usual, run_start=start)) for start in RUN_STARTS}
    return Section(
        title=TITLES["search"],
        command=command("search"),
        figures=(
            *(figure for noise, by_hosts in by_noise for figure in noise_figures(noise, by_hosts)),
            *bill_figures(raced[USUAL, usual.hosts]),
            *(
                figure
                for start, most in RUN_STARTS.items()
                for figure in group_figures(
                    short[start], f"a run's start of {start:g} s", most=most
                )
            ),
            *type_figures(
                [section for surface in measured for section in sections(surface)][
                    :: 9 if is_quick else 1
                ]
            ),
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
    """The figures of a noise, from the suites for each spread of the hosts."""
    name = f"noise {100 * noise:g} %"
    together = [suite for raced in by_hosts for suite in raced]
    yield from group_figures(together, name, most=MOST_OF_GROUP)
    yield _within(
        f"race, {name}",
        [suite.played.regret for suite in together],
        budget=at_least(LEAST_WITHIN[noise]),
    )
    yield Figure(
        name=f"race, {name}: suites that say wrongly that a cell beats each other one, of "
        f"{len(together)}",
        value=100
        * sum(claims_too_much(suite.surface, suite.played) for suite in together)
        / len(together),
        unit="%",
        budget=at_most(MOST_WRONG),
    )
    most = MOST_FALSE_NONE_NEAR[noise]
    yield Figure(
        name=f"race, {name}: suites that say wrongly that no other cell was within 5 %, of "
        f"{len(together)}",
        value=100
        * sum(says_none_near_wrongly(suite.surface, suite.played) for suite in together)
        / len(together),
        unit="%",
        budget=None if most is None else at_most(most),
    )


def group_figures(raced: Sequence[Raced], name: str, *, most: float | None) -> Iterator[Figure]:
    """The shares of each group's surfaces: their median and range."""
    for group in GROUPS:
        shares = _shares(raced, group)
        yield Figure(
            name=f"race, {name}, {group}: billable seconds ÷ the grid's, median over surfaces",
            value=spread(shares) if shares else None,
            unit="%",
            budget=None if most is None or group == THIS_MACHINE else at_most(most),
        )


def bill_figures(raced: Sequence[Raced]) -> Iterator[Figure]:
    for group in GROUPS:
        shares = _shares(raced, group)
        yield Figure(
            name=f"race, {group}: billable seconds ÷ the grid's, mean over surfaces",
            value=fmean(shares) if shares else None,
            unit="%",
        )
        for part in BILL:
            of_part = [
                100 * suite.played.bill[part] for suite in raced if group_of(suite.surface) == group
            ]
            yield Figure(
                name=f"race, {group}: {part} ÷ the grid's billable seconds, median",
                value=median(of_part) if of_part else None,
                unit="%",
            )


def _shares(raced: Sequence[Raced], group: str) -> list[float]:
    """The share of each surface in %, which is the mean of its suites."""
    by_surface: dict[str, list[float]] = {}
    for suite in raced:
        if group_of(suite.surface) == group:
            by_surface.setdefault(suite.surface.name, []).append(100 * suite.played.share)
    return [fmean(shares) for shares in by_surface.values()]


def type_figures(surfaces: Sequence[Surface]) -> Iterator[Figure]:
    raced = race_all(surfaces, Conditions(noise=USUAL))
    yield Figure(
        name=f"race, instance types only: billable seconds ÷ the grid's, median over {len(raced)} "
        "sections",
        value=100 * median(suite.played.share for suite in raced),
        unit="%",
    )
    yield _within("race, instance types only", [suite.played.regret for suite in raced])


def other_figures(raced: Sequence[Raced], conditions: Conditions) -> Iterator[Figure]:
    surfaces = [suite.surface for suite in raced[::SUITES]]
    halved = [halve(surface, 1, conditions) for surface in surfaces]
    yield Figure(
        name="race: billable seconds ÷ the grid's, median over all surfaces",
        value=_median(raced),
        unit="%",
    )
    shared = [
        shared_grid_seconds(surface, conditions) / grid_seconds(surface, conditions)
        for surface in surfaces
    ]
    yield Figure(
        name="grid in shared jobs: billable seconds ÷ the grid's, median over all surfaces",
        value=100 * median(shared),
        unit="%",
    )
    yield Figure(
        name="successive halving: billable seconds ÷ the grid's, median over all surfaces",
        value=100 * median(share for share, _ in halved),
        unit="%",
    )
    yield _within("successive halving", [regret for _, regret in halved])
    shares = [suite.played.share for suite in raced[::SUITES]]
    yield _asha_figure(surfaces, shares, conditions)
    drawn = [
        sample(surface, 1, conditions, share=share)
        for surface, share in zip(surfaces, shares, strict=True)
    ]
    yield _within("random search", drawn)
    yield _within("grid", [measure_grid(surface, 1, conditions).regret for surface in surfaces])


def _asha_figure(
    surfaces: Sequence[Surface], shares: Sequence[float], conditions: Conditions
) -> Figure:
    """The figure of Syne Tune's ASHA, without a value where Syne Tune is not installed."""
    pairs = zip(surfaces, shares, strict=True) if is_installed() else ()
    return _within(
        "ASHA of Syne Tune",
        [search_by_asha(surface, 1, conditions, share=share) for surface, share in pairs],
    )


def _median(raced: Sequence[Raced]) -> float:
    return 100 * median(suite.played.share for suite in raced)


def _within(name: str, regrets: Sequence[float], budget: Budget | None = None) -> Figure:
    """The share of suites whose cell is nearly the best, without a value where none was played."""
    share = 100 * fmean(regret <= TOLERANCE for regret in regrets) if regrets else None
    return Figure(
        name=f"{name}: suites whose cell is within 2 % of the best",
        value=share,
        unit="%",
        budget=budget,
    )


def group_of(surface: Surface) -> str:
    if not surface.is_of_table:
        is_local = str(surface.training.get("instance", "")).startswith(LOCAL_PREFIX)
        return THIS_MACHINE if is_local else GROUPS[3]
    if not surface.name.startswith("vtrain-h1024"):
        return GROUPS[0]
    return GROUPS[1] if surface.goal is GoalKind.FASTEST else GROUPS[2]


def sections(surface: Surface) -> list[Surface]:
    """Surfaces whose cells differ in their instances only, evenly chosen."""
    alike: dict[str, list[int]] = {}
    for index, cell in enumerate(surface.cells):
        settings = {
            name: value
            for name, value in cell.settings.items()
            if name not in ("instance", "instance_count")
        }
        alike.setdefault(repr(sorted(settings.items())), []).append(index)
    parts = [
        replace(
            surface,
            name=f"{surface.name} {key}",
            cells=tuple(surface.cells[index] for index in alike[key]),
        )
        for key in sorted(alike)
    ]
    useful = [
        part
        for part in parts
        if len(part.cells) >= FEWEST_TYPES
        and sum(cell.seconds is not None for cell in part.cells) > 1
    ]
    return useful[:: max(1, len(useful) // MOST_OF_A_SURFACE)][:MOST_OF_A_SURFACE]
