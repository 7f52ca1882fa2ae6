"""Damaged descriptions of training jobs end in a suite that is accepted, or in JobNotImportable with a message."""

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz.cpu_limit import cpu_limit
from tests.fuzz.mutations import VALUES, damaged_document
from tests.nightly import NIGHTLY
from tests.unit.sagemaker.test_imported_jobs import DECISIONS, REQUESTS, Bucket, description
from tests.unit.sagemaker.test_model_trainer import CAPTURED
from tests.unit.sagemaker.test_request import first_request
from tests.unit.suites import small_suite
from traindyno.api.suite_text import read_suite_text
from traindyno.cli.commands.import_command import cost_lines, notes, suite_text
from traindyno.cli.inputs.imported_job import import_described, price_job
from traindyno.core.suite.checks.accepted_suite import parse_suite
from traindyno.sagemaker.imported.axes import suggest_axes
from traindyno.sagemaker.imported.program import JobNotImportable

COUNT = (20_000 if NIGHTLY else 2000) // 2
PARTS = 4
MOST_CPU_SECONDS = 10.0
JOBS = [
    *(description(REQUESTS[name]) for name in sorted(REQUESTS)[::3]),
    *(description(CAPTURED[name]["request"]) for name in sorted(CAPTURED) if CAPTURED[name].get("request")),
    *[description(first_request(small_suite()))] * 5,
]
# Text of hyperparameters, which the toolkit decodes as JSON.
TEXTS = ["3", '["a"]', "null", "{}", '{"a": [1, {"b": null}]}', "{", "[" * 5000, '"\\ud800"', "1e999", "NaN", '"/etc"']
SDK_NAMES = ["sagemaker_submit_directory", "sagemaker_program", "workload", "settings", "mp_parameters", "x"]


def damaged_job(number: int) -> dict[str, Any]:
    source = random.Random(number)
    job: dict[str, Any] = deepcopy(source.choice(JOBS))
    if source.random() < 0.4:
        name = source.choice([*SDK_NAMES, *job["HyperParameters"]])
        text = source.choice(TEXTS)
        if source.random() < 0.5 and name in job["HyperParameters"]:
            text = json_text(damaged_document([decoded(job["HyperParameters"][name])], source)) or text
        job["HyperParameters"][name] = text
    elif source.random() < 0.1:
        return source.choice(VALUES)
    else:
        job = damaged_document(job, source)
    return job


def decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def json_text(values: Any) -> str | None:
    try:
        return json.dumps(values[0])
    except (ValueError, RecursionError, IndexError):
        return None


@pytest.mark.parametrize("part", range(PARTS))
def test_damage_ends_in_a_suite_or_in_a_refusal(part: int, tmp_path: Path) -> None:
    imported = refused = 0
    for number in range(part, COUNT, PARTS):
        try:
            with cpu_limit(MOST_CPU_SECONDS):
                is_imported = put_through(damaged_job(number), random.Random(-number), tmp_path / "suite.yaml")
        except BaseException as error:
            raise AssertionError(f"job {number}: {error!r}") from error
        imported, refused = imported + is_imported, refused + (not is_imported)
    assert imported > refused / 10
    assert refused > imported / 10


def put_through(job: Any, source: random.Random, path: Path) -> bool:
    """The importer and all that the command shows; whether there is a suite."""
    documents = [*CAPTURED["basic"]["trainer"]["source_code"].items()]
    code, distributed = dict(documents), {"process_count_per_node": None}
    if source.random() < 0.3:
        code, distributed = (damaged_document(each, source) for each in (code, distributed))
    files = Bucket(sourcecode=bytes_of(code), distributed=bytes_of(distributed))
    try:
        found = import_described(job, DECISIONS, s3=files)  # type: ignore[arg-type]
    except JobNotImportable as error:
        assert str(error).encode()  # what can't be printed is no message
        return False
    assert parse_suite(found.document)
    path.write_text(suite_text(found, suggest_axes(found.document)), encoding="utf-8")
    assert read_suite_text(path).document == found.document
    seconds, rows = price_job(job, [found.document["training"]["instance"]], {})
    assert "\n".join([*notes(found), *cost_lines(seconds, rows)]).encode()
    return True


def bytes_of(document: Any) -> bytes:
    try:
        return json.dumps(document).encode()
    except (ValueError, RecursionError):
        return b"{"
