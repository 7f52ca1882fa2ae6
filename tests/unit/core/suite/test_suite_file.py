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
    measurement={"trials": 5, "warmup": 12, "max_steps": 70, "evaluate": True, "save_model": True},
    purchase="spot",
    claims=CLAIMS,
    notes="why",
)
PROBLEMS: dict[str, dict[str, Any]] = {
    "an unknown field": {"serch": "grid"},
    "a wrong type in an axis": {"matrix": {"instance_count": [2, "four"]}},
    "a value with a short form": {
        "training": {"learning_rate": "high"},
        "workload": {**small_document()["workload"], "model": 5},
    },
    "a yes for an integer": {"measurement": {"trials": True}},
    "a number for a yes": {"measurement": {"evaluate": 1}},
    "a misspelt choice": {"matrix": {"compiler": ["none", "inductr"]}},
    "a value where a list belongs": {"matrix": {"compiler": "none"}},
    "text and a mapping where lists belong": {
        "exclude": {"compiler": "none"},
        "include": "us-west-2",
    },
    "a goal with the wrong limit": {"goal": {"cheapest-within": {"usd": 8}}},
    "a goal that is none": {"goal": "best"},
    "one trial for a limit": {
        "goal": {"fastest-within": {"usd": 5}},
        "measurement": {"trials": 1},
    },
    "a warm-up of all steps": {"measurement": {"warmup": 200}},
    "a warm-up that is none": {"measurement": {"warmup": "long"}},
    "several at once, in any section": {
        "purchase": "sport",
        "include": [{"strateg": "ddp"}, {"instance_count": 1.5}],
        "baseline": [],
    },
    "a goal of quality without evaluations": {"goal": {"fastest-to": {"accuracy": 0.9}}},
    "an accuracy in percent": {
        "goal": {"fastest-to": {"accuracy": 90}},
        "measurement": {"evaluate_every_steps": 5},
    },
    "a goal of two qualities": {"goal": {"cheapest-to": {"accuracy": 0.9, "loss": 2}}},
    "an empty axis": {"matrix": {"compiler": []}},
    "a value twice": {"matrix": {"compiler": ["none", "none"]}},
    "no instance type": {"training": {}},
    "an unknown instance type": {"training": {"instance": "ml.g5.13xlarge"}},
    "one field in two places": {"training": {"instance": "ml.g5.xlarge", "compiler": "none"}},
    "a cap of nothing": {"limits": {"max_usd": 0, "max_hours": 1, "max_job_seconds": 60}},
    "a negative batch": {"matrix": {"compiler": ["none"], "batch_size_per_device": [0]}},
    "a learning rate of nothing": {"training": {"instance": "ml.g5.xlarge", "learning_rate": 0}},
    "a pending time that SageMaker refuses": {
        "limits": {
            "max_usd": 1,
            "max_hours": 1,
            "max_job_seconds": 60,
            "max_pending_seconds": 60,
        }
    },
    "a baseline off the matrix": {"baseline": {"compiler": "xla"}},
    "a baseline of no axis": {"baseline": {"strategy": "ddp"}},
    "an exclusion that matches nothing": {"exclude": [{"compiler": "xla"}]},
    "an exclusion of everything": {"exclude": [{}]},
    "an exclusion of each cell": {
        "baseline": {},
        "exclude": [{"compiler": "inductor"}, {"compiler": "none"}],
    },
    "an inclusion that is there": {"include": [{"compiler": "inductor"}]},
    "an inclusion twice": {"include": [{"seed": 1}, {"seed": 1}]},
    "too many cells": {
        "matrix": {
            "compiler": ["none"],
            "seed": list(range(200)),
            "loader_workers": list(range(100)),
        }
    },
    "hyperparameters of a built-in task": {
        "matrix": {"compiler": ["none"], "hyperparameters.lr": [1]}
    },
    "too many runs": {
        "matrix": {"compiler": ["none"], "seed": list(range(2000))},
        "measurement": {"trials": 51},
    },
    "an impossible combination of two cells": {
        "matrix": {"compiler": ["none", "neuron"], "seed": [1, 2]}
    },
}
UNSTORABLE: dict[str, Any] = {
    "a size beyond DynamoDB's": 1e130,
    "text with an exponent": "1e2",
    "text with an underscore": "1_000",
    "sixty digits": "1" * 60,
    "no number": float("nan"),
    "an integer of 5,001 digits": 10**5000,
}
WORKLOADS: dict[str, dict[str, Any]] = {
    "no model": {"model": None},
    "two kinds of model": {"model": {"path": "gpt2", "config": {"model_type": "gpt2"}}},
    "a config of no type": {"model": {"config": {}}},
    "no tokenizer for a config": {"tokenizer": None},
    "an empty tokenizer": {"tokenizer": {}},
    "data from nowhere": {"dataset": {}},
    "synthetic data from somewhere": {"dataset": {"path": "x", "format": "synthetic"}},
    "classes of unknown number": {"task": "sequence-classification"},
    "a script's field": {"entry_point": "train.py"},
}
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
ONE_CELL = {"matrix": {"compiler": ["none"]}}


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


def test_mistakes_of_a_suites_claims_are_named_at_their_place(snapshot: Snapshot) -> None:
    broken = {
        **CLAIMS,
        "claims": [CLAIM, {**CLAIM, "claim_id": "loss", "tolerance": 0, "against": {}}],
    }
    snapshot(problems(small_document(claims=broken)))


@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE)
def test_numbers_beyond_a_row_are_refused(snapshot: Snapshot, value: Any) -> None:
    limits = {**small_document()["limits"], "max_usd": value}
    snapshot(problems(small_document(limits=limits)))


def test_a_too_deep_or_too_large_document_is_refused_at_once() -> None:
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


@pytest.mark.parametrize("changes", PROBLEMS.values(), ids=PROBLEMS)
def test_a_problem_says_place_value_and_remedy(snapshot: Snapshot, changes: dict[str, Any]) -> None:
    snapshot(problems(small_document(**changes)))


def test_missing_sections_are_all_named(snapshot: Snapshot) -> None:
    snapshot(problems({"name": "x"}))


@pytest.mark.parametrize("document", [[], "text", None, 3])
def test_a_document_without_a_mapping_is_one_problem(snapshot: Snapshot, document: Any) -> None:
    (problem,) = problems(document)
    snapshot(problem)


@pytest.mark.parametrize("changes", WORKLOADS.values(), ids=WORKLOADS)
def test_a_workload_lacks_nothing_needed_by_its_task(
    snapshot: Snapshot, changes: dict[str, Any]
) -> None:
    document = small_document(workload={**small_document()["workload"], **changes})
    snapshot(problems(document))


def test_a_script_needs_its_source_and_sees_only_its_own_axes(snapshot: Snapshot) -> None:
    document = script_document(
        workload={"task": "script", "examples": 1, "entry_point": "train.sh"},
        matrix={"instance": ["local.cpu"], "batch_size_per_device": [1, 2]},
    )
    snapshot(problems(document))


def test_a_script_sees_no_fixed_settings_but_those_of_its_launcher(snapshot: Snapshot) -> None:
    seen = {"strategy": "single", "seed": 7, "hyperparameters.bs": 8}
    assert problems(script_document(training=seen, include=[{"seed": 9}])) == []
    training = {**seen, "precision": "bf16", "batch_size_per_device": 64}
    unseen = {"training": training, "include": [{"adapter": {"rank": 8}}]}
    snapshot(problems(script_document(**unseen)))
    assert problems(small_document(training={"instance": "ml.g5.xlarge", **seen})) == [
        "training.hyperparameters.bs: only task script has hyperparameters of its own, expected a "
        "setting"
    ]


def test_a_script_gets_each_argument_once_whatever_the_values_types() -> None:
    for values, shown in (([8, "8"], '"8"'), ([True, "True"], '"True"'), ([None, ""], '""')):
        matrix = {"instance": ["local.cpu"], "hyperparameters.bs": values}
        assert problems(script_document(matrix=matrix)) == [
            f"matrix.hyperparameters.bs[1]: got {shown} again, expected each value once"
        ]
    matrix = {"instance": ["local.cpu"], "hyperparameters.bs": [8, 8.0, "08"]}
    assert problems(script_document(matrix=matrix)) == []
    (problem,) = problems(script_document(matrix=matrix, include=[{"hyperparameters.bs": "8"}]))
    assert problem.startswith("include[0]: ")


@pytest.mark.parametrize(
    ("name", "is_accepted"),
    [
        *((name, True) for name in ("train.py", "a/b-c.py", "_x+1.py", ".hidden/a.py")),
        *((name, False) for name in ("./train.py", "my train.py", "a@b.py", "-x.py", "a/../b.py")),
    ],
)
def test_the_training_toolkit_starts_the_entry_point(name: str, is_accepted: bool) -> None:
    """tests/toolkit/test_script_jobs.py asks the toolkit."""
    document = script_document()
    document["workload"]["entry_point"] = name
    lines = [line for line in problems(document) if says(line, "workload.entry_point: got ")]
    assert not lines if is_accepted else len(lines) == 1


def test_all_problems_are_named_at_once_including_those_of_content() -> None:
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


@pytest.mark.parametrize("form", BROKEN_FORM)
@pytest.mark.parametrize("content", BROKEN_CONTENT)
def test_a_problem_of_form_hides_none_of_content_and_makes_none(form: str, content: str) -> None:
    document = small_document()
    for changes, _ in (BROKEN_FORM[form], BROKEN_CONTENT[content]):
        for section, values in changes.items():
            old = document.get(section)
            document[section] = {**old, **values} if isinstance(old, dict) else values
    paths = {problem.split(": ")[0] for problem in problems(document)}
    assert paths >= {BROKEN_FORM[form][1], BROKEN_CONTENT[content][1]}
    alone = small_document()
    for section, values in BROKEN_FORM[form][0].items():
        old = alone.get(section)
        alone[section] = {**old, **values} if isinstance(old, dict) else values
    assert {problem.split(": ")[0] for problem in problems(alone)} == {BROKEN_FORM[form][1]}


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
        "nothing",
        "trials",
        "grid",
        "separate",
        "separate race",
        "one cell",
        "trials of it",
        "included",
        "race of one cell",
    ],
)
def test_a_race_is_the_default_for_runs_sharing_jobs(
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


def test_jobs_of_an_older_version_are_told_no_field_unknown_to_them() -> None:
    for document, is_told in ((without_search(), True), (small_document(), False)):
        suite = parse_suite(document)
        (run, *_) = trial_runs("e", suite.cells, [1])
        assert ("least_seconds" in own_hyperparameters(run, suite)["measurement"]) is is_told
