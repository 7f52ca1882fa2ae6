"""Each simulation is held to its limit plus two standard errors of its own number of
repetitions.
"""

import pytest

from tests.simulations.future_runs import measure_coverage
from tests.simulations.logged_runs import judge
from tests.simulations.repetitions import TIMES, repetitions
from tests.simulations.scenarios import CELLS, RATE_SCENARIOS, STEPS, STOP_SCENARIOS, Cell, Scenario
from tests.simulations.stopped_runs import measure_stops

RATE_REPETITIONS = 100
STOP_REPETITIONS = 60
PREDICTION_REPETITIONS = 400
PREDICTION_STEPS = 120


@pytest.mark.parametrize("scenario", RATE_SCENARIOS, ids=lambda scenario: scenario.name)
def test_rate_and_projection_are_right_or_called_not_steady(scenario: Scenario) -> None:
    judged = judge(scenario.process, repetitions(RATE_REPETITIONS, scenario.name), steps=STEPS)
    assert judged.wrong <= 0.05
    assert judged.within >= scenario.least_within


@pytest.mark.parametrize("scenario", STOP_SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_run_with_an_early_end_knows_its_step_time(scenario: Scenario) -> None:
    stops = measure_stops(scenario.process, repetitions(STOP_REPETITIONS, scenario.name))
    claimed_wrongly = stops.stopped * (1 - stops.true)
    assert claimed_wrongly <= 0.07
    assert stops.stopped >= scenario.least_within


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_nine_of_ten_later_runs_lie_within_the_prediction_interval(cell: Cell) -> None:
    coverage = measure_coverage(
        cell.process,
        repetitions(PREDICTION_REPETITIONS, cell.name),
        steps=PREDICTION_STEPS,
        trials=cell.trials,
        host_deviation=cell.host_deviation,
    )
    error = 2 * (0.95 * 0.05 / (PREDICTION_REPETITIONS * TIMES)) ** 0.5
    assert 0.85 <= coverage.covered <= 0.95 + error
    assert coverage.median_error <= 0.03
