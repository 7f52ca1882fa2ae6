"""Rows of noises that are in a trial as a whole: its hosts, its time of day, and whether it is
lost.
"""

from functools import partial
from math import log

from tests.simulations.suites import levels
from tests.simulations.suites.figures import Row
from tests.simulations.suites.forms import of_trials, row
from tests.simulations.suites.play import Situation, play_baseline

THREE = (0.0, log(1.03))
TEN = (0.0, log(1.1))
FIVE_ALIKE = tuple(0.0025 * cell if cell < 5 else 0.02 + 0.01 * (cell - 4) for cell in range(30))


CONTROL = (
    *of_trials("independent trials, CV 2 %", levels.hosts(0.02)),
    row(
        "independent trials, CV 2 %, a lead of 10 %, 2 cells",
        Situation(levels=TEN, noise=levels.hosts(0.02)),
    ),
)
# Five trials often have no slow host at all, so that they say nothing about slow hosts.
SKEWED = ("covered",)
ONE_IN_SIX = "one host in six slower by 8 %"
HOSTS = (
    *of_trials(f"{ONE_IN_SIX}, new ones each trial", levels.slow_hosts(), excepted=SKEWED),
    *of_trials(
        f"{ONE_IN_SIX}, 8 instances, the slowest decides",
        levels.slow_hosts(8),
        forms="L",
        instance_count=8,
        excepted=SKEWED,
    ),
    *of_trials(
        f"{ONE_IN_SIX}, two hosts that each cell keeps", levels.slow_hosts(kept=2), excepted=SKEWED
    ),
    *(
        row(
            f"each cell keeps one host, CV 2 %, {cells} equal cells",
            Situation(levels=(0.0,) * cells, noise=levels.kept_hosts(0.02)),
            share_of_suites=min(1.0, 8 / cells),
        )
        for cells in (2, 8, 32)
    ),
    *(
        row(
            f"8 nodes of 9 reserved{text}, one in six slower by 8 %, {cells} equal cells",
            Situation(levels=(0.0,) * cells, noise=noise, instance_count=8),
        )
        for text, noise in (
            ("", levels.reserved(8, 9)),
            (" for each cell", levels.reserved(8, 9, per_cell=True)),
        )
        for cells in (2, 4)
    ),
    *(
        row(
            f"4 nodes of 5 reserved{text}, cells at 0 and 3 %",
            Situation(levels=THREE, noise=noise, instance_count=4),
        )
        for text, noise in (
            ("", levels.reserved(4, 5)),
            (" for each cell", levels.reserved(4, 5, per_cell=True)),
        )
    ),
)
COLD = "first trial of each cell slower by 12 %"
DAY = "time of day: AR 0.95, CV 3 %, and a sine of 2 %"
# All trials are of one afternoon: the blocks compare the cells, and no trial shows another time of
# day.
ONE_AFTERNOON = ("covered",)
TIME = (
    *of_trials(COLD, levels.cold_first_trials()),
    *of_trials(DAY, levels.time_of_day(), excepted=ONE_AFTERNOON),
    *(
        row(
            f"trials resemble the one before in their cell only (AR 0.7), {cells} equal cells",
            Situation(levels=(0.0,) * cells, noise=levels.own_series()),
            excepted=("wrong", "covered") if cells == 2 else ("covered",),
        )
        for cells in (2, 8)
    ),
)
BASELINE = tuple(
    Row(
        name=f"the same: its ratio to the baseline is called detected, {cells} equal cells",
        play=partial(play_baseline, Situation(levels=(0.0,) * cells, noise=levels.own_series())),
        share_of_suites=min(1.0, 8 / cells),
        excepted=("covered",),
    )
    for cells in (8, 32)
)
# What is left of the second cell's trials is faster than the others: none shows what the lost ones
# would have taken.
SLOW = log(levels.SLOW_STEP_SECONDS)
LOST = (
    *of_trials("a fifth of the trials lost at random", levels.lost_at_random(0.2), slower=SLOW),
    *of_trials(
        "a tenth of the trials repeated after a service fault", levels.retried(0.1), slower=SLOW
    ),
    *of_trials("trials slower by 5 % lost in 80 %, CV 4 %", levels.lost_if_slow(), slower=SLOW),
    row(
        "45 % of one cell's hosts slower by 15 %, their trials lost; another +3 %",
        Situation(levels=(log(1.03), 0.0, log(1.06), log(1.08)), noise=levels.slow_ones_lost(1)),
        excepted=("undecided", "regret"),
    ),
)
ONE_BETTER = (*THREE, log(1.03))
SEARCH = (
    row(
        "two equal, one better by 3 %, CV 2 %",
        Situation(levels=ONE_BETTER, noise=levels.hosts(0.02)),
    ),
    row(
        "30 cells, five of them within 1 %, CV 2 %",
        Situation(levels=FIVE_ALIKE, noise=levels.hosts(0.02)),
        share_of_suites=0.25,
    ),
)
TRIAL_ROWS = (*CONTROL, *HOSTS, *TIME, *BASELINE, *LOST, *SEARCH)
