"""Suite documents: what is accepted, and every problem of what is not, word for word."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.sentences import Snapshot
from tests.unit.suites import problems, says, script_document, small_document
from traindyno.core.run.record import StopWhen
from traindyno.core.run.settings import LearningRate, Settings
from traindyno.core.run.workload import Model, Workload, workload_document
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import (
    DatasetFormat,
    GoalKind,
    LearningRateScaling,
    Precision,
    Search,
    Strategy,
)
from traindyno.core.suite.goal import Goal
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite_file import (
    parse_part,
    read_stored_suite,
    stored_suite,
    suite_document,
)
from traindyno.features import FEATURES
from traindyno.sagemaker.launcher import own_hyperparameters

FULL = Path(__file__).parents[3] / "data/suites/albert-scaling.yaml"


def full_document() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(FULL.read_text())
    return document


def test_the_full_example_reads_as_written() -> None:
    suite = parse_suite(full_document())
    assert suite.goal == Goal(kind=GoalKind.CHEAPEST)
    assert suite.workload.model == Model(path="albert/albert-base-v2")
    assert suite.workload.dataset is not None
    assert suite.workload.dataset.format is DatasetFormat.AUTO
    assert suite.training["precision"] is Precision.BF16
    assert suite.training["learning_rate"] == LearningRate(
        base=5e-5, reference_batch_size=32, scale_with=LearningRateScaling.GLOBAL_BATCH
    )
    assert suite.matrix["strategy"] == (Strategy.DDP, Strategy.SMDDP, Strategy.FSDP)
    assert suite.exclude == (
        {"strategy": Strategy.SMDDP, "instance_count": 16, "loader_workers": 0},
    )
    assert suite.measurement.warmup is None
    assert suite.measurement.stop_when == StopWhen(relative_half_width=0.01)
    assert suite.limits.max_usd == Decimal(800)


CLAIM = {
    "claim_id": "gain",
    "text": "inductor is 20 % faster",
    "source": "a post",
    "published": 0.2,
    "quantity": "samples_per_second",
    "form": "gain",
    "tolerance": 0.1,
    "cell": {"compiler": "inductor"},
    "against": {"compiler": "none"},
}
CLAIMS = {"title": "A post", "source": "a post", "claims": [CLAIM]}
NO_DEFAULTS = small_document(
    goal={"cheapest-within": {"hours": 8}},
    include=[{"learning_rate": 1e-4, "gradient_clip_norm": 1.0}],
    measurement={"trials": 5, "warmup": 12, "max_steps": 7, "evaluate": True, "save_model": True},
    purchase="spot",
    claims=CLAIMS,
    notes="why",
)


@pytest.mark.parametrize(
    "document", [full_document(), small_document(), script_document(), NO_DEFAULTS]
)
def test_a_suite_survives_its_own_document_as_json(document: dict[str, Any]) -> None:
    suite = parse_suite(document, FEATURES)
    written = json.loads(json.dumps(suite_document(suite)))
    assert parse_suite(written, FEATURES) == suite
    # whichever features a later program has
    assert read_stored_suite(json.loads(json.dumps(stored_suite(suite)))) == suite


def test_a_part_is_read_alone() -> None:
    suite = parse_suite(full_document())
    assert (
        parse_part(json.loads(json.dumps(workload_document(suite.workload))), Workload)
        == suite.workload
    )
    settings = parse_part({"instance": "local.cpu", "learning_rate": 1e-3}, Settings)
    assert settings.learning_rate == LearningRate(base=1e-3)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cheapest", Goal(kind=GoalKind.CHEAPEST)),
        ("fastest", Goal(kind=GoalKind.FASTEST)),
        (
            {"cheapest-within": {"hours": 8.5}},
            Goal(kind=GoalKind.CHEAPEST_WITHIN, hours=Decimal("8.5")),
        ),
        ({"fastest-to": {"accuracy": 0.9}}, Goal(kind=GoalKind.FASTEST_TO, accuracy=0.9)),
        ({"cheapest-to": {"loss": 2}}, Goal(kind=GoalKind.CHEAPEST_TO, loss=2.0)),
        ({"cheapest-to": {"perplexity": 30.5}}, Goal(kind=GoalKind.CHEAPEST_TO, perplexity=30.5)),
        (
            {"fastest-within": {"usd": "500.10"}},
            Goal(kind=GoalKind.FASTEST_WITHIN, usd=Decimal("500.10")),
        ),
    ],
)
def test_goals_have_a_short_form(written: Any, meant: Goal) -> None:
    suite = parse_suite(small_document(goal=written, measurement={"evaluate_every_steps": 5}))
    assert suite.goal == meant
    assert parse_suite(json.loads(json.dumps(suite_document(suite)))) == suite


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"goal": {"fastest-to": {"accuracy": 0.9}}},
            "measurement.evaluate_every_steps: goal fastest-to needs evaluations during the run: "
            "got nothing, expected a number of steps",
        ),
        (
            {"goal": {"fastest-to": {"accuracy": 90}}, "measurement": {"evaluate_every_steps": 5}},
            "goal.accuracy: got 90.0, expected more than 0 and at most 1",
        ),
        (
            {"goal": {"cheapest-to": {"accuracy": 0.9, "loss": 2}}},
            "goal.cheapest-to: got {accuracy, loss}, expected "
            "{accuracy: <number>} or {loss: <number>} or {perplexity: <number>}",
        ),
    ],
)
def test_a_goal_of_quality_that_can_not_be_judged_is_refused(
    changes: dict[str, Any], expected: str
) -> None:
    assert problems(small_document(**changes)) == [expected]


def test_terms_of_prices_are_bounded_and_name_types(snapshot: Snapshot) -> None:
    pricing = {"spot": {"ml.g5.xlarge": {"discount": 1.5}, "ml.g5.large": {"discount": 0.5}}}
    bound, name = problems(small_document(pricing=pricing))
    snapshot(bound)
    snapshot(name)


@pytest.mark.parametrize(
    ("written", "meant"),
    [(0.1, "0.1"), (800, "800"), ("12.345", "12.345"), (1e-2, "0.01"), (29.99, "29.99")],
)
def test_money_has_no_binary_noise(written: Any, meant: str) -> None:
    limits = {**small_document()["limits"], "max_usd": written}
    assert parse_suite(small_document(limits=limits)).limits.max_usd == Decimal(meant)


def test_what_is_wrong_with_a_suites_claims_is_named_where_it_stands(snapshot: Snapshot) -> None:
    broken = {
        **CLAIMS,
        "claims": [CLAIM, {**CLAIM, "claim_id": "loss", "tolerance": 0, "against": {}}],
    }
    snapshot(problems(small_document(claims=broken)))


FORM: dict[str, tuple[dict[str, Any], list[str]]] = {
    "an unknown field": (
        {"serch": "grid"},
        [
            'serch: unknown field "serch": did you mean "search"? Expected '
            "one of name, goal, workload, matrix, "
            "training, baseline, include, exclude, preparation, measurement, "
            "limits, tolerance, search, purchase, "
            "job, pricing, notes, claims, estimates"
        ],
    ),
    "a wrong type in an axis": (
        {"matrix": {"instance_count": [2, "four"]}},
        ['matrix.instance_count[1]: got "four", expected an integer'],
    ),
    "a value with a short form": (
        {
            "training": {"learning_rate": "high"},
            "workload": {**small_document()["workload"], "model": 5},
        },
        [
            "workload.model: got 5, expected text or a mapping with path, config, revision",
            'training.learning_rate: got "high", expected a number or a '
            "mapping with base, reference_batch_size, "
            "scale_with",
        ],
    ),
    "a yes for an integer": (
        {"measurement": {"trials": True}},
        ["measurement.trials: got true, expected an integer"],
    ),
    "a number for a yes": (
        {"measurement": {"evaluate": 1}},
        ["measurement.evaluate: got 1, expected true or false"],
    ),
    "a misspelt choice": (
        {"matrix": {"compiler": ["none", "inductr"]}},
        [
            (
                'matrix.compiler[1]: got "inductr": did you mean "inductor"? Expected one of '
                "none, inductor, xla, neuron"
            )
        ],
    ),
    "a value where a list belongs": (
        {"matrix": {"compiler": "none"}},
        ['matrix.compiler: got "none", expected a list of values'],
    ),
    "text and a mapping where lists belong": (
        {"exclude": {"compiler": "none"}, "include": "us-west-2"},
        [
            "exclude: got a mapping with compiler, expected a list of mappings of settings",
            'include: got "us-west-2", expected a list of mappings of settings',
        ],
    ),
    "a goal with the wrong limit": (
        {"goal": {"cheapest-within": {"usd": 8}}},
        ["goal.cheapest-within: got {usd}, expected {hours: <number>}"],
    ),
    "a goal that is none": (
        {"goal": "best"},
        [
            'goal: got "best": did you mean "fastest"? Expected one '
            "of cheapest, fastest, cheapest-within: "
            "{hours: <number>}, "
            "fastest-within: {usd: <number>}, "
            "cheapest-to: {accuracy: <number>} or {loss: <number>} or {perplexity: <number>}, "
            "fastest-to: {accuracy: <number>} or {loss: <number>} or {perplexity: <number>}"
        ],
    ),
    "a warm-up that is none": (
        {"measurement": {"warmup": "long"}},
        ['measurement.warmup: got "long", expected auto or an integer'],
    ),
    "several at once, in any section": (
        {
            "purchase": "sport",
            "include": [{"strateg": "ddp"}, {"instance_count": 1.5}],
            "baseline": [],
        },
        [
            "baseline: got a list, expected a mapping of settings",
            "include[1].instance_count: got 1.5, expected an integer",
            'purchase: got "sport": did you mean "spot"? Expected one of on-demand, spot',
        ],
    ),
}


UNSTORABLE = {
    "a size beyond DynamoDB's": (
        1e130,
        "got 1e+130, expected a number of at most 28 digits and a size of 1e±18",
    ),
    "text with an exponent": ("1e2", 'got "1e2", expected a number'),
    "text with an underscore": ("1_000", 'got "1_000", expected a number'),
    "sixty digits": (
        "1" * 60,
        f'got "{"1" * 59}, expected a number of at most 28 digits and a size of 1e±18',
    ),
    "no number": (float("nan"), "got NaN, expected a finite number within 64 bits"),
    "an integer of 5,001 digits": (
        10**5000,
        "got an integer of 16610 bits, expected a finite number within 64 bits",
    ),
}


@pytest.mark.parametrize(("value", "expected"), UNSTORABLE.values(), ids=UNSTORABLE)
def test_numbers_that_no_row_can_hold_are_refused(value: Any, expected: str) -> None:
    limits = {**small_document()["limits"], "max_usd": value}
    (problem,) = problems(small_document(limits=limits))
    assert problem == f"limits.max_usd: {expected}"


def test_a_document_that_is_too_deep_or_too_large_is_refused_at_once() -> None:
    deep: Any = 1
    for _ in range(3000):
        deep = [deep]
    bomb: Any = ["x"] * 9
    for _ in range(9):
        bomb = [bomb] * 9
    workload = small_document()["workload"]
    for config, expected in (
        (deep, "levels, expected at most 100"),
        (bomb, "values, expected at most 50000"),
    ):
        document = small_document(
            workload={**workload, "model": {"config": {"model_type": "gpt2", "x": config}}}
        )
        (problem,) = problems(document)
        assert problem == f"too many {expected}"


@pytest.mark.parametrize(("changes", "expected"), FORM.values(), ids=FORM)
def test_a_problem_of_form_says_where_what_and_what_would_do(
    changes: dict[str, Any], expected: list[str]
) -> None:
    assert set(expected) <= set(problems(small_document(**changes)))


def test_missing_sections_are_all_named() -> None:
    found = problems({"name": "x"})
    assert found == [
        "goal: got nothing, expected a mapping",
        "workload: got nothing, expected a mapping",
        "limits: got nothing, expected a mapping",
    ]


@pytest.mark.parametrize("document", [[], "text", None, 3])
def test_what_is_no_mapping_at_all_is_one_problem(snapshot: Snapshot, document: Any) -> None:
    (problem,) = problems(document)
    snapshot(problem)


CONTENT: dict[str, tuple[dict[str, Any], str]] = {
    "an empty axis": (
        {"matrix": {"compiler": []}},
        "matrix.compiler: got an empty list, expected at least one value",
    ),
    "a value twice": (
        {"matrix": {"compiler": ["none", "none"]}},
        'matrix.compiler[1]: got "none" again, expected each value once',
    ),
    "no instance type": (
        {"training": {}},
        "matrix.instance: expected a list of instance types here or one in training",
    ),
    "an unknown instance type": (
        {"training": {"instance": "ml.g5.13xlarge"}},
        'training.instance: got "ml.g5.13xlarge": did you mean "ml.g5.16xlarge"',
    ),
    "one field in two places": (
        {"training": {"instance": "ml.g5.xlarge", "compiler": "none"}},
        "matrix.compiler: compiler is in training and in matrix",
    ),
    "a cap of nothing": (
        {"limits": {"max_usd": 0, "max_hours": 1, "max_job_seconds": 60}},
        "limits.max_usd: got 0, expected more than 0 and at most 1000000000",
    ),
    "a negative batch": (
        {"matrix": {"compiler": ["none"], "batch_size_per_device": [0]}},
        "matrix.batch_size_per_device[0]: got 0, expected at least 1 and at most 1000000",
    ),
    "a learning rate of nothing": (
        {"training": {"instance": "ml.g5.xlarge", "learning_rate": 0}},
        "training.learning_rate.base: got 0.0, expected more than 0",
    ),
    "a pending time that SageMaker refuses": (
        {
            "limits": {
                "max_usd": 1,
                "max_hours": 1,
                "max_job_seconds": 60,
                "max_pending_seconds": 60,
            }
        },
        "limits.max_pending_seconds: got 60, expected at least 1800 and at most 2419200",
    ),
    "a baseline off the matrix": (
        {"baseline": {"compiler": "xla"}},
        "baseline: got {compiler: xla}, expected values that the matrix holds",
    ),
    "a baseline of no axis": (
        {"baseline": {"strategy": "ddp"}},
        'baseline.strategy: got "strategy", expected an axis of the matrix: compiler',
    ),
    "an exclusion that matches nothing": (
        {"exclude": [{"compiler": "xla"}]},
        "exclude[0]: got {compiler: xla}, expected values that the matrix holds",
    ),
    "an exclusion of everything": ({"exclude": [{}]}, "exclude[0]: an empty mapping"),
    "an inclusion that is there": (
        {"include": [{"compiler": "inductor"}]},
        "include[0]: {compiler: inductor} is already a cell of the grid",
    ),
    "an inclusion twice": (
        {"include": [{"seed": 1}, {"seed": 1}]},
        "include[1]: {seed: 1} is already a cell of the grid",
    ),
    "too many cells": (
        {
            "matrix": {
                "compiler": ["none"],
                "seed": list(range(200)),
                "loader_workers": list(range(100)),
            }
        },
        "matrix: got 20000 cells, expected at most 10000",
    ),
    "hyperparameters of a built-in task": (
        {"matrix": {"compiler": ["none"], "hyperparameters.lr": [1]}},
        (
            "matrix.hyperparameters.lr: only task script has hyperparameters of its own, "
            "expected a setting"
        ),
    ),
    "too many runs": (
        {
            "matrix": {"compiler": ["none"], "seed": list(range(2000))},
            "measurement": {"trials": 51},
        },
        "measurement.trials: got 2000 cells × 51 trials, expected at most 100000 runs",
    ),
    "an impossible combination of two cells": (
        {"matrix": {"compiler": ["none", "neuron"], "seed": [1, 2]}},
        "matrix.compiler: expected ml.trn2 (in cell neuron · seed 1 and 1 more;",
    ),
}


@pytest.mark.parametrize(("changes", "expected"), CONTENT.values(), ids=CONTENT)
def test_a_problem_of_content_says_where_what_and_what_would_do(
    changes: dict[str, Any], expected: str
) -> None:
    assert any(says(problem, expected) for problem in problems(small_document(**changes)))


WORKLOADS: dict[str, tuple[dict[str, Any], str]] = {
    "no model": (
        {"model": None},
        "workload.model: got nothing, expected a value with task causal-lm",
    ),
    "two kinds of model": (
        {"model": {"path": "gpt2", "config": {"model_type": "gpt2"}}},
        "workload.model: got both, expected one of path and config",
    ),
    "a config of no type": (
        {"model": {"config": {}}},
        "workload.model.config.model_type: expected a model type",
    ),
    "no tokenizer for a config": (
        {"tokenizer": None},
        "workload.tokenizer: expected path or train_vocabulary_size",
    ),
    "an empty tokenizer": (
        {"tokenizer": {}},
        "workload.tokenizer: got neither, expected one of path and train_vocabulary_size",
    ),
    "data from nowhere": (
        {"dataset": {}},
        "workload.dataset.path: got nothing, expected a path, or format synthetic",
    ),
    "synthetic data from somewhere": (
        {"dataset": {"path": "x", "format": "synthetic"}},
        "workload.dataset.path: got x, expected no path with format synthetic",
    ),
    "classes of unknown number": (
        {"task": "sequence-classification"},
        "workload.label_count: got nothing, expected an integer with task sequence-classification",
    ),
    "a script's field": (
        {"entry_point": "train.py"},
        "workload.entry_point: expected nothing with task causal-lm",
    ),
}


@pytest.mark.parametrize(("changes", "expected"), WORKLOADS.values(), ids=WORKLOADS)
def test_a_workload_lacks_nothing_that_its_task_needs(
    changes: dict[str, Any], expected: str
) -> None:
    document = small_document(workload={**small_document()["workload"], **changes})
    assert any(says(problem, expected) for problem in problems(document))


def test_a_script_needs_its_source_and_sees_only_its_own_axes(snapshot: Snapshot) -> None:
    document = script_document(
        workload={"task": "script", "examples": 1, "entry_point": "train.sh"},
        matrix={"instance": ["local.cpu"], "batch_size_per_device": [1, 2]},
    )
    snapshot(problems(document))


@pytest.mark.parametrize(
    ("name", "is_accepted"),
    [
        *((name, True) for name in ("train.py", "a/b-c.py", "_x+1.py", ".hidden/a.py")),
        *((name, False) for name in ("./train.py", "my train.py", "a@b.py", "-x.py", "a/../b.py")),
    ],
)
def test_an_entry_point_is_one_that_the_training_toolkit_starts(
    name: str, is_accepted: bool
) -> None:
    """tests/toolkit/test_script_jobs.py asks the toolkit."""
    document = script_document()
    document["workload"]["entry_point"] = name
    found = [each for each in problems(document) if says(each, "workload.entry_point: got ")]
    assert not found if is_accepted else len(found) == 1


def test_all_problems_are_named_at_once_those_of_content_too() -> None:
    document = small_document(
        name="two words",
        serch="grid",
        matrix={"instance": ["ml.g5.xlarge", "ml.p9.huge"], "instance_count": [1, "four"]},
        limits={"max_usd": 0, "max_job_seconds": "long"},
    )
    form = {"serch", "matrix.instance_count[1]", "limits.max_hours", "limits.max_job_seconds"}
    content = {"name", "matrix.instance", "matrix.instance[1]", "limits.max_usd"}
    assert {problem.split(": ")[0] for problem in problems(document)} == form | content
    del document["serch"]
    document["matrix"]["instance_count"] = [1, 4]
    document["limits"] = {"max_usd": 0, "max_hours": 1, "max_job_seconds": 60}
    assert {problem.split(": ")[0] for problem in problems(document)} == content


BROKEN_FORM: dict[str, tuple[dict[str, Any], str]] = {
    "trainig": ({"trainig": {"strategy": "ddp"}}, "trainig"),
    "precison": ({"training": {"precison": "bf16"}}, "training.precison"),
    "trails": ({"measurement": {"trails": 2}}, "measurement.trails"),
    "goal": ({"goal": "quickest"}, "goal"),
    "workers": ({"matrix": {"loader_workers": [1, "two"]}}, "matrix.loader_workers[1]"),
}
BROKEN_CONTENT: dict[str, tuple[dict[str, Any], str]] = {
    "max_usd": ({"limits": {"max_usd": -1}}, "limits.max_usd"),
    "max_steps": ({"measurement": {"max_steps": 0}}, "measurement.max_steps"),
    "batch": ({"training": {"batch_size_per_device": 0}}, "training.batch_size_per_device"),
    "type": ({"matrix": {"instance": ["ml.p9.huge"]}}, "matrix.instance[0]"),
}


@pytest.mark.parametrize("form", BROKEN_FORM)
@pytest.mark.parametrize("content", BROKEN_CONTENT)
def test_a_problem_of_form_hides_none_of_content_and_makes_none(form: str, content: str) -> None:
    document = small_document()
    for changes, _ in (BROKEN_FORM[form], BROKEN_CONTENT[content]):
        for section, values in changes.items():
            old = document.get(section)
            document[section] = {**old, **values} if isinstance(old, dict) else values
    found = {problem.split(": ")[0] for problem in problems(document)}
    assert found >= {BROKEN_FORM[form][1], BROKEN_CONTENT[content][1]}
    alone = small_document()
    for section, values in BROKEN_FORM[form][0].items():
        old = alone.get(section)
        alone[section] = {**old, **values} if isinstance(old, dict) else values
    assert {problem.split(": ")[0] for problem in problems(alone)} == {BROKEN_FORM[form][1]}


ONE_CELL = {"matrix": {"compiler": ["none"]}}


def without_search(**changes: Any) -> dict[str, Any]:
    return {name: value for name, value in small_document(**changes).items() if name != "search"}


@pytest.mark.parametrize(
    ("document", "search", "trials"),
    [
        (without_search(measurement={}), Search.RACE, 9),
        (without_search(measurement={"trials": 4}), Search.RACE, 4),
        (small_document(measurement={}), Search.GRID, 5),
        (without_search(measurement={"jobs": "separate"}), Search.GRID, 5),
        (small_document(measurement={"jobs": "separate"}, search="race"), Search.RACE, 9),
        (without_search(measurement={}, **ONE_CELL), Search.GRID, 3),
        (without_search(measurement={"trials": 1}, **ONE_CELL), Search.GRID, 1),
        (without_search(measurement={}, **ONE_CELL, include=[{"seed": 7}]), Search.RACE, 9),
        (small_document(measurement={}, **ONE_CELL, search="race"), Search.RACE, 9),
    ],
    ids=[
        *("nothing", "trials", "grid", "separate", "separate race"),
        *("one cell", "trials of it", "included", "race of one cell"),
    ],
)
def test_a_race_is_the_default_where_runs_share_jobs(
    document: dict[str, Any], search: Search, trials: int
) -> None:
    suite = parse_suite(document)
    assert (suite.search, suite.measurement.trials) == (search, trials)
    assert read_stored_suite(stored_suite(suite)) == suite
    assert suite.search.is_race is (search is not Search.GRID)


@pytest.mark.parametrize(
    ("measurement", "steps", "seconds"),
    [
        ({}, 20, 2.0),
        ({"max_steps": 100}, 100, None),
        ({"least_seconds": 5}, 200, 5.0),
        ({"warmup": 50}, 200, None),
        ({"evaluate_every_steps": 50}, 200, None),
    ],
)
def test_a_run_of_a_race_has_twenty_steps_and_two_seconds_by_default(
    measurement: dict[str, Any], steps: int, seconds: float | None
) -> None:
    of_race = parse_suite(without_search(measurement=measurement)).measurement
    assert (of_race.max_steps, of_race.least_seconds) == (steps, seconds)
    alone = parse_suite(without_search(measurement=measurement, **ONE_CELL)).measurement
    assert (alone.max_steps, alone.least_seconds) == (steps, seconds)
    in_grid = parse_suite(small_document(measurement=measurement)).measurement
    assert in_grid.max_steps == measurement.get("max_steps", 200)
    assert in_grid.least_seconds == measurement.get("least_seconds")


def test_a_script_and_a_schedule_of_the_full_run_keep_the_number_of_steps() -> None:
    script = {name: value for name, value in script_document().items() if name != "search"}
    assert parse_suite(script).measurement.least_seconds is None
    workload = {**small_document()["workload"], "full_run": {"evaluate_every_steps": 1000}}
    assert parse_suite(without_search(workload=workload)).measurement.least_seconds is None


def test_jobs_of_an_older_version_are_told_no_field_that_they_do_not_know() -> None:
    for document, is_told in ((without_search(), True), (small_document(), False)):
        suite = parse_suite(document)
        (run, *_) = trial_runs("e", suite.cells, [1])
        assert ("least_seconds" in own_hyperparameters(run, suite)["measurement"]) is is_told
