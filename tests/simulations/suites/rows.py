"""All rows of whole suites."""

from functools import partial
from math import log

from tests.simulations.suites.figures import Row
from tests.simulations.suites.limits import play_limit
from tests.simulations.suites.play import EQUAL, LEVELS
from tests.simulations.suites.quality import Learning, play_quality
from tests.simulations.suites.spot import Spot, play_spot
from tests.simulations.suites.step_rows import STEP_ROWS
from tests.simulations.suites.trial_rows import TRIAL_ROWS

TWO = (0.0, 0.0)
THREE_FASTER = (log(1.03), 0.0)
SPOT = {
    "spot, 1 interruption per hour in all cells [L]": Spot(levels=LEVELS, per_hour=(1.0,) * 4),
    "spot, 1 per hour on one type, which is 3 % faster; none on the other": Spot(
        levels=THREE_FASTER, per_hour=(0.0, 1.0)
    ),
    "the same with 3 per hour": Spot(levels=THREE_FASTER, per_hour=(0.0, 3.0)),
    "spot, 1 in 20 hours on one type, which is 10 % faster; none on the other": Spot(
        levels=(log(1.1), 0.0), per_hour=(0.0, 0.05)
    ),
}
QUALITY = {
    "2 cells, 7 % apart, seeds' CV 5 %": Learning(levels=(0.0, log(1.07)), deviation=0.05),
    "2 equal cells, seeds' CV 10 %": Learning(levels=TWO, deviation=0.10),
    "4 equal cells, seeds' CV 10 %": Learning(levels=EQUAL, deviation=0.10),
    "4 equal cells, seeds' CV 3 %": Learning(levels=EQUAL, deviation=0.03),
    "cells at 0, 3, 5, 8 %, seeds' CV 5 %": Learning(levels=LEVELS, deviation=0.05),
    "2 equal cells, seeds' CV 10 %, the script fixes the seed": Learning(
        levels=TWO, deviation=0.10, is_seed_fixed=True
    ),
    "cells at 0, 3, 5, 8 %, seeds' CV 5 %, the script fixes the seed": Learning(
        levels=LEVELS, deviation=0.05, is_seed_fixed=True
    ),
    "2 equal cells, evaluation each 40 steps": Learning(
        levels=TWO, deviation=0.05, evaluate_every=40
    ),
    "the same with 3 trials": Learning(levels=TWO, deviation=0.05, evaluate_every=40, trials=3),
}


def _quality_excepted(learning: Learning) -> tuple[str, ...]:
    """Nothing is concluded from one seed, so that the cell that is named has no claim."""
    return ("regret", "undecided") if learning.is_seed_fixed else ()


GOAL_ROWS = (
    *(
        Row(name=name, play=partial(play_spot, spot), share_of_suites=0.5)
        for name, spot in SPOT.items()
    ),
    *(
        Row(
            name=f"time to quality, {name}",
            play=partial(play_quality, learning),
            share_of_suites=0.4,
            excepted=_quality_excepted(learning),
        )
        for name, learning in QUALITY.items()
    ),
    *(
        Row(
            name=f"cheapest within a limit, CV {percent} %: a later run breaks it",
            play=partial(play_limit, percent / 100),
            most_wrong=0.10,
            excepted=("covered", "regret", "undecided"),
        )
        for percent in (2, 5)
    ),
)
ROWS = (*STEP_ROWS, *TRIAL_ROWS, *GOAL_ROWS)
