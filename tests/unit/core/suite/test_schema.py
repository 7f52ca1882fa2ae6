"""The published JSON Schema says what the parser says, for good documents and bad ones."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.unit.core.suite.test_suite_file import full_document
from tests.unit.suites import script_document, small_document
from traindyno.api.suite_text import read_suite_text
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.schema import file_schema, suite_schema
from traindyno.core.suite.suite_file import suite_document

REPO_ROOT = Path(__file__).parents[4]
PUBLISHED = REPO_ROOT / "docs/suite.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(suite_schema())

GOOD = {
    "the full example": full_document(),
    "a built-in task": small_document(),
    "a script": script_document(),
    "money as text": small_document(limits={"max_usd": "12.50", "max_hours": 1, "max_job_seconds": 60}),
    "a goal with a limit": small_document(goal={"fastest-within": {"usd": 5}}),
    "short forms": small_document(
        workload={**small_document()["workload"], "model": "gpt2", "tokenizer": None},
        training={"instance": "local.cpu", "learning_rate": 0.001},
        measurement={"warmup": 5},
    ),
    "hyperparameters as an axis": script_document(matrix={"instance": ["local.cpu"], "hyperparameters.lr": [0.1, 1]}),
}


@pytest.mark.parametrize("document", GOOD.values(), ids=GOOD)
def test_what_parses_is_valid_and_so_is_what_we_write_back(document: dict[str, Any]) -> None:
    suite = parse_suite(document)
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []
    assert [error.message for error in VALIDATOR.iter_errors(suite_document(suite))] == []


BAD: dict[str, dict[str, Any]] = {
    "an unknown field": {"serch": "grid"},
    "an unknown setting": {"training": {"instance": "ml.g5.xlarge", "btach": 1}},
    "an unknown axis": {"matrix": {"compilr": ["none"]}},
    "text for an integer": {"matrix": {"instance_count": [2, "four"]}},
    "a yes for an integer": {"measurement": {"trials": True}},
    "an empty axis": {"matrix": {"compiler": []}},
    "a value twice": {"matrix": {"compiler": ["none", "none"]}},
    "a value where a list belongs": {"matrix": {"compiler": "none"}},
    "an unknown instance type": {"training": {"instance": "ml.g5.13xlarge"}},
    "a cap of nothing": {"limits": {"max_usd": 0, "max_hours": 1, "max_job_seconds": 60}},
    "no cap": {"limits": {"max_hours": 1, "max_job_seconds": 60}},
    "a negative batch": {"training": {"instance": "ml.g5.xlarge", "batch_size_per_device": -1}},
    "a learning rate of nothing": {"training": {"instance": "ml.g5.xlarge", "learning_rate": 0}},
    "a goal of no such name": {"goal": "best"},
    "a goal with the wrong limit": {"goal": {"cheapest-within": {"usd": 8}}},
    "a warm-up that is none": {"measurement": {"warmup": "long"}},
    "no trials": {"measurement": {"trials": 0}},
    "a share over one": {"measurement": {"stop_when": {"relative_half_width": 2}}},
    "a name unfit for jobs": {"name": "my suite"},
    "an empty exclusion": {"exclude": [{}]},
    "both kinds of model": {
        "workload": {**small_document()["workload"], "model": {"path": "a", "config": {"model_type": "gpt2"}}}
    },
    "a tokenizer of neither kind": {"workload": {**small_document()["workload"], "tokenizer": {}}},
    "a task without its model": {"workload": {"task": "causal-lm", "examples": 1}},
    "a script without its source": {"workload": {"task": "script", "examples": 1, "entry_point": "train.py"}},
    "classes of unknown number": {"workload": {**small_document()["workload"], "task": "sequence-classification"}},
    "a script's field in a built-in task": {"workload": {**small_document()["workload"], "source": "s3://b/c"}},
}


@pytest.mark.parametrize("changes", BAD.values(), ids=BAD)
def test_what_does_not_parse_is_not_valid(changes: dict[str, Any]) -> None:
    document = small_document(**changes)
    with pytest.raises(SuiteInvalid):
        parse_suite(document)
    assert not VALIDATOR.is_valid(document)


def test_the_schema_is_one_itself() -> None:
    meta_schema = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    assert [error.message for error in meta_schema.iter_errors(suite_schema())] == []


def test_the_published_file_is_current() -> None:
    assert json.loads(PUBLISHED.read_text()) == file_schema()


@pytest.mark.parametrize("path", sorted((REPO_ROOT / "suites").glob("*.yaml")), ids=lambda path: path.stem)
def test_every_shipped_suite_is_valid_as_it_is_written(path: Path) -> None:
    validator = jsonschema.Draft202012Validator(file_schema())
    assert [error.message for error in validator.iter_errors(read_suite_text(path).document)] == []
