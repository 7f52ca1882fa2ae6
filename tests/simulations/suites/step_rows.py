"""Rows of noises that are in the steps of a run."""

from tests.simulations.processes import warming_up
from tests.simulations.suites.forms import as_is, in_all, in_one
from tests.simulations.suites.noises import drifting, pareto, sawtooth, stalled, switching

TAILS = (
    *in_all("steps with a Pareto tail, exponent 2.5", pareto(2.5)),
    in_one("Pareto 2.5 in the worse cell (4 %)", pareto(2.5), truth=0.04),
)
# No trial shows whether the stall recurs.
UNDECIDABLE = ("undecided", "regret")
DRIFTS = (
    *in_all("drift of 2 % over the 200 steps, then level", drifting(0.02, 200)),
    in_one(
        "drift to +6 %, time constant 600, in one; another +2.5 %",
        warming_up(0.06, 600),
        truth=0.06,
        other=0.025,
        excepted=("undecided", "regret"),
    ),
    in_one("sawtooth of 6 % each 80 steps in one (+3 %)", sawtooth(0.06, 80), truth=0.03),
)
STALLS = (
    *in_all(
        "stall of 5 s each 97 steps, evaluation of 8 s each 50", stalled(97, 5.0, evaluate_every=50)
    ),
    as_is("stall of 5 s each 97 steps", stalled(97, 5.0), other=0.02),
    as_is("stall of 8 s each 150 steps", stalled(150, 8.0), other=0.02, excepted=UNDECIDABLE),
    as_is(
        "stall of 20 s each 300 steps, random phase,",
        stalled(300, 20.0, phase="random"),
        other=0.03,
        excepted=UNDECIDABLE,
    ),
    as_is("stall of 30 s each 97 steps", stalled(97, 30.0), other=0.03),
)
STATES = (
    as_is("+60 % in 10 % of the steps, for 8 each,", switching(0.1, 0.6, 8), other=0.03),
    *(
        row
        for dwell in (10, 30, 60)
        for row in (
            *in_all(
                f"network +15 % a third of the time, for {dwell} steps",
                switching(1 / 3, 0.15, dwell),
                forms="E",
            ),
            in_one(
                f"the same, for {dwell} steps, in one (+5 %); another +2 %",
                switching(1 / 3, 0.15, dwell),
                truth=0.05,
                other=0.02,
                most_wrong=0.10 if dwell == 60 else 0.05,
            ),
        )
    ),
)
STEP_ROWS = (*TAILS, *DRIFTS, *STALLS, *STATES)
