"""The seed of a trial: the same in all cells, another one in each trial, and how a job gets it."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.run_samples import completed_result
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import problems, says, script_document, small_document, small_suite
from traindyno.core.run.settings import MOST_SEED
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs, with_seeds
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.next_round import plan_round
from traindyno.sagemaker.request import build_training_job_request

ARGUMENT = "measurement.seed_argument"


def script_suite(**changes: Any) -> Suite:
    return parse_suite(script_document(**changes))


def seeds(suite: Suite, *trials: int) -> dict[int, set[int | None]]:
    """Trial → the seeds of its runs, over all cells."""
    by_trial: dict[int, set[int | None]] = {}
    for run in with_seeds(suite, trial_runs("e", suite.cells, trials)):
        by_trial.setdefault(run.trial, set()).add(run.seed)
    return by_trial


def requests(suite: Suite) -> list[dict[str, Any]]:
    runs = plan_round(suite, suite.cells, execution_id="e", round_number=1)
    runs = tuple(sorted(runs, key=lambda run: (run.trial, run.cell.label)))
    return [build_training_job_request(run, suite, attempt=2, settings=SETTINGS) for run in runs]


@pytest.mark.parametrize("base", [0, 7, MOST_SEED])
@pytest.mark.parametrize("trials", [1, 2, 5])
def test_trial_k_trains_with_the_seed_plus_k_minus_1_in_every_cell(base: int, trials: int) -> None:
    suite = small_suite(
        training={"instance": "ml.g5.xlarge", "seed": base}, measurement={"trials": trials}
    )
    expected = [(base + index) % (MOST_SEED + 1) for index in range(trials)]
    assert seeds(suite, *range(1, trials + 1)) == {
        trial: {expected[trial - 1]} for trial in range(1, trials + 1)
    }


def test_cells_comparing_seeds_keep_their_own_in_all_trials() -> None:
    suite = small_suite(matrix={"seed": [3, 11]}, baseline={}, measurement={"trials": 3})
    assert seeds(suite, 1, 2, 3) == {1: {3, 11}, 2: {3, 11}, 3: {3, 11}}
    included = small_suite(include=[{"seed": 5}])
    assert seeds(included, 2) == {2: {0, 5}}
    # a seed that every cell has is not compared
    assert seeds(small_suite(include=[{"seed": 0, "weight_decay": 0.5}]), 2) == {2: {1}}
    # one value for all cells is the seed of the first trial
    assert seeds(small_suite(matrix={"seed": [3]}, baseline={}), 1, 2) == {1: {3}, 2: {4}}


def test_a_built_in_task_gets_the_trials_seed_beside_the_cells() -> None:
    hyperparameters = [request["HyperParameters"] for request in requests(small_suite())]
    assert [json.loads(given["trial_seed"]) for given in hyperparameters] == [0, 0, 1, 1]
    assert {json.loads(given["settings"])["seed"] for given in hyperparameters} == {0}


def test_a_script_gets_its_seed_in_the_environment() -> None:
    jobs = requests(script_suite(training={"seed": 100}))
    assert [job["Environment"]["TRAINDYNO_SEED"] for job in jobs] == ["100", "101"]
    assert all("seed" not in job["HyperParameters"] for job in jobs)
    assert all("TRAINDYNO_SEED" not in job["Environment"] for job in requests(small_suite()))


def test_a_script_gets_its_seed_as_the_argument_of_the_suite() -> None:
    jobs = requests(script_suite(measurement={"trials": 2, "seed_argument": "random_seed"}))
    assert [job["HyperParameters"]["random_seed"] for job in jobs] == ["0", "1"]
    assert [job["Environment"]["TRAINDYNO_SEED"] for job in jobs] == ["0", "1"]


@pytest.mark.parametrize(
    "name", ["--seed", "", "a seed", "sagemaker_seed", "mp_parameters", "1st", "x" * 257]
)
def test_a_name_of_no_argument_is_refused(name: str) -> None:
    (problem,) = problems(script_document(measurement={"seed_argument": name}))
    assert says(problem, f"{ARGUMENT}: expected the name of an argument without dashes in front")


@pytest.mark.parametrize(
    ("section", "given"),
    [
        ("workload.hyperparameters", {}),
        ("training", {"training": {"hyperparameters.lr": 1.0}}),
        ("matrix", {"matrix": {"instance": ["ml.g5.xlarge"], "hyperparameters.lr": [1.0, 2.0]}}),
        ("include[0]", {"include": [{"hyperparameters.lr": 1.0}]}),
    ],
)
def test_an_argument_given_by_the_suite_too_is_refused(section: str, given: dict[str, Any]) -> None:
    document = script_document(**given, measurement={"seed_argument": "lr"})
    if given:
        document["workload"] = {**document["workload"], "hyperparameters": {}}
    assert problems(document) == [
        f"{ARGUMENT}: {section} gives the argument lr too, expected it in one of them; "
        "training.seed is the seed of the first trial"
    ]


def test_a_built_in_task_has_no_seed_argument() -> None:
    (problem,) = problems(small_document(measurement={"seed_argument": "seed"}))
    assert says(problem, f"{ARGUMENT}: only task script has arguments, expected nothing")


def test_the_seed_argument_counts_as_a_hyperparameter() -> None:
    document = script_document(measurement={"seed_argument": "seed"})
    document["workload"] = {
        **document["workload"],
        "hyperparameters": {f"n{index}": 1 for index in range(90)},
    }
    assert problems(document) == ["workload.hyperparameters: got 91 names, expected at most 90"]


def test_a_scripts_word_about_its_seed_decides_whether_its_trials_are_draws() -> None:
    suite = script_suite()
    cell = suite.cells[0]
    assert completed_result(cell, 2, suite=suite).seed is None
    assert completed_result(cell, 2, suite=suite, facts={"seed": 1}).seed == 1
    # a seed of its own, which is not the trial's
    assert completed_result(cell, 2, suite=suite, facts={"seed": 42}).seed is None
    by_argument = replace(suite, measurement=replace(suite.measurement, seed_argument="seed"))
    assert completed_result(cell, 2, suite=by_argument).seed == 1
