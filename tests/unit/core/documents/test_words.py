"""Words of Trainer, TRL, Lightning and Accelerate lead to a field, or to the way that exists."""

import json
import re
from importlib.resources import files

import pytest

from bench.suite_schema import file_schema
from tests.unit.suites import problems, small_document
from traindyno.core.documents.problems import advice_on
from traindyno.features import FEATURES

WORDS = json.loads(files("traindyno.core.documents.data").joinpath("words.json").read_text())


def test_each_named_field_exists() -> None:
    named = set(re.findall(r"\b(?:training|workload|measurement)\.[a-z_.]+[a-z_]", str(WORDS)))
    assert len(named) > 15
    assert [
        path for path in sorted(named) if path.split(".")[-1] not in str(file_schema(FEATURES))
    ] == []


def test_a_word_is_no_field_or_value_of_a_suite() -> None:
    document = small_document()
    for word in WORDS["fields"]:
        lines = problems({**document, "training": {**document["training"], word: 1}})
        assert [line for line in lines if f'training.{word}: unknown field "{word}": ' in line]
    assert advice_on("fields", ["lora"]) is None


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        ("precision", "fp8", "not built in: write a script"),
        ("strategy", "zero3", "name fsdp"),
        ("optimizer", "adamw_8bit", "not built in: write a script"),
        ("precision", "fp31", 'did you mean "fp32"?'),
    ],
)
def test_a_value_without_a_misspelling_has_its_own_sentence(
    path: str, value: str, told: str
) -> None:
    document = small_document()
    lines = problems({**document, "training": {**document["training"], path: value}})
    assert told in str(lines)


@pytest.mark.parametrize("task", ["token-classification", "summarization", "image-classification"])
def test_other_tasks_are_a_script(task: str) -> None:
    document = small_document()
    lines = str(problems({**document, "workload": {**document["workload"], "task": task}}))
    assert "write a script (task: script, docs/own-script.md)" in lines
    assert "did you mean" not in lines
