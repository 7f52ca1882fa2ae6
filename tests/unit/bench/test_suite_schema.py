"""The published JSON Schema says what the parser says, for good documents and bad ones."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bench.suite_schema import file_schema
from tests.unit.core.suite.test_suite_file import PROBLEMS, WORKLOADS, full_document
from tests.unit.suites import script_document, small_document
from traindyno.api.suite_text import read_suite_text
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite_file import suite_document
from traindyno.features import FEATURES

REPO_ROOT = Path(__file__).parents[3]
PUBLISHED = REPO_ROOT / "docs/suite.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(file_schema(FEATURES))

GOOD = {
    "the full example": full_document(),
    "a built-in task": small_document(),
    "a script": script_document(),
    "money as text": small_document(
        limits={"max_usd": "12.50", "max_hours": 1, "max_job_seconds": 60}
    ),
    "a goal with a limit": small_document(goal={"fastest-within": {"usd": 5}}),
    "short forms": small_document(
        workload={**small_document()["workload"], "model": "gpt2", "tokenizer": None},
        training={"instance": "local.cpu", "learning_rate": 0.001},
        measurement={"warmup": 5},
    ),
    "hyperparameters as an axis": script_document(
        matrix={"instance": ["local.cpu"], "hyperparameters.lr": [0.1, 1]}
    ),
}
FORM_AND_BOUNDS = (
    "an unknown field",
    "a wrong type in an axis",
    "a value with a short form",
    "a yes for an integer",
    "a number for a yes",
    "a misspelt choice",
    "a value where a list belongs",
    "text and a mapping where lists belong",
    "a goal with the wrong limit",
    "a goal that is none",
    "a warm-up that is none",
    "several at once, in any section",
    "an empty axis",
    "a value twice",
    "an unknown instance type",
    "a cap of nothing",
    "a negative batch",
    "a learning rate of nothing",
    "a pending time that SageMaker refuses",
    "an exclusion of everything",
)
# What the parser refuses with a message: see the tests of PROBLEMS and WORKLOADS.
REFUSED: dict[str, dict[str, Any]] = {
    **{name: PROBLEMS[name] for name in FORM_AND_BOUNDS},
    **{
        name: {"workload": {**small_document()["workload"], **WORKLOADS[name]}}
        for name in ("two kinds of model", "an empty tokenizer")
    },
    "an unknown setting": {"training": {"instance": "ml.g5.xlarge", "btach": 1}},
    "an unknown axis": {"matrix": {"compilr": ["none"]}},
    "a share over one": {"measurement": {"stop_when": {"relative_half_width": 2}}},
    "a name unfit for jobs": {"name": "my suite"},
}


@pytest.mark.parametrize("document", GOOD.values(), ids=GOOD)
def test_parsed_and_written_suites_are_valid(document: dict[str, Any]) -> None:
    suite = parse_suite(document)
    assert [error.message for error in VALIDATOR.iter_errors(document)] == []
    assert [error.message for error in VALIDATOR.iter_errors(suite_document(suite))] == []


@pytest.mark.parametrize("changes", REFUSED.values(), ids=REFUSED)
def test_refused_suites_are_not_valid(changes: dict[str, Any]) -> None:
    assert not VALIDATOR.is_valid(small_document(**changes))


def test_the_schema_is_one_itself() -> None:
    meta_schema = jsonschema.Draft202012Validator(jsonschema.Draft202012Validator.META_SCHEMA)
    assert [error.message for error in meta_schema.iter_errors(file_schema(FEATURES))] == []


def test_the_published_file_is_current() -> None:
    assert json.loads(PUBLISHED.read_text()) == file_schema(FEATURES)


@pytest.mark.parametrize(
    "path", sorted((REPO_ROOT / "suites").glob("*.yaml")), ids=lambda path: path.stem
)
def test_every_shipped_suite_is_valid_as_it_is_written(path: Path) -> None:
    assert [error.message for error in VALIDATOR.iter_errors(read_suite_text(path).document)] == []
