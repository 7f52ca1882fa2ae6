"""Single runs of 200 steps, with noises on which no constant of the lab was chosen: is a rate
right, or not steady?
"""

from tests.simulations.processes import level, noise, warming_up
from tests.simulations.scenarios import Scenario
from tests.simulations.suites.noises import decaying, drifting, stalled

PROCESSES = {
    "independent noise, CV 2 %": noise(),
    "loader slower by 60 % at the start, time constant 40": decaying(0.6, 40),
    "slows down by 8 %, time constant 150": warming_up(0.08, 150),
    "slows down by 15 %, time constant 150": warming_up(0.15, 150),
    "drift of 2 % over the run": drifting(0.02, 200),
    "stall of 8 s each 150 steps, not logged": stalled(150, 8.0),
    "stall of 30 s each 97 steps, not logged": stalled(97, 30.0),
    "buffers that drain after 80 steps": level(lambda step: 0.84 if step < 80 else 1.0, 1.0),
}
JUDGED_RUNS = tuple(
    Scenario(name=name, process=process, least_within=0.0) for name, process in PROCESSES.items()
)
