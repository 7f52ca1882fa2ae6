"""A secret of a job or trainer is nowhere in what an import gives: it is left out by name, or the job is refused."""

import json
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from tests.unit.core.suite.test_secrets_check import NO_SECRETS, SECRET_NAMES, SECRET_VALUES
from tests.unit.sagemaker.test_request import first_request
from tests.unit.slices.test_imported_jobs import DECISIONS, Bucket, description, job_of
from tests.unit.slices.test_model_trainer import CAPTURED, as_object, trainer_of
from tests.unit.suites import small_suite
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.slices.imported.client import import_described
from traindyno.slices.imported.job import JobNotImportable
from traindyno.slices.imported.model_trainer import from_model_trainer
from traindyno.slices.imported.suite_of_job import ImportedSuite

# A secret under a name that says it, and under one that says nothing.
NAMED = [*SECRET_NAMES.items(), *(("plain", value) for value in SECRET_VALUES)]
PLANTED = "postgres://user:the-password@host/db"
SDK_3 = CAPTURED["basic"]["request"]
SOURCE_CODE = CAPTURED["basic"]["trainer"]["source_code"]
JOBS = {
    "sdk 2": job_of(Environment={"A": "1"}),
    "sdk 3": description(SDK_3),
    "built-in": description(first_request(small_suite())),
}


def files(source_code: Any = SOURCE_CODE) -> Any:
    return Bucket(sourcecode=json.dumps(source_code).encode(), distributed=b"{}")


def told(found: ImportedSuite) -> str:
    return json.dumps([found.document, found.missing, dict(found.left_out)]) + repr(found.differences)


@pytest.mark.parametrize(("name", "value"), NAMED)
def test_both_importers_leave_out_what_has_the_name_or_value_of_a_secret(name: str, value: str) -> None:
    job = job_of()
    job["Environment"] = {**job.get("Environment", {}), "KEPT": "1", name: value}
    job["HyperParameters"] |= {"kept": "1", name: json.dumps(value), f"a_{name}": json.dumps({name: [value]})}
    given = {"kept": 1, name: value, f"a_{name}": {name: [value]}}
    trainer = trainer_of("basic", environment={"KEPT": "1", name: value}, hyperparameters=given)
    for found in (import_described(job, DECISIONS, s3=files()), from_model_trainer(trainer, DECISIONS)):
        workload = parse_suite(found.document).workload
        assert workload.environment.items() >= {"KEPT": "1"}.items()
        assert "kept" in workload.hyperparameters
        assert {f"Environment.{name}", f"HyperParameters.{name}", f"HyperParameters.a_{name}"} <= found.left_out.keys()
        assert name not in workload.environment.keys() | workload.hyperparameters.keys()
        assert value not in told(found)


def test_what_is_no_secret_is_kept() -> None:
    job = job_of(Environment=dict(NO_SECRETS))
    job["HyperParameters"] |= {name: json.dumps(value) for name, value in NO_SECRETS.items()}
    found = import_described(job, DECISIONS, s3=files())
    assert found.left_out == {}
    assert found.document["workload"]["environment"] == NO_SECRETS
    assert found.document["workload"]["hyperparameters"].items() >= NO_SECRETS.items()


def planted(value: Any) -> Iterator[Any]:
    """Copies of the document, each with the secret at another place, also inside the JSON text of a hyperparameter."""
    for path, text in list(texts_of(value)):
        for secret in (PLANTED, *([with_secret(text)] if text.startswith("{") else [])):
            copy = deepcopy(value)
            place = copy
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = secret
            yield copy


def texts_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        yield path, value
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in parts:
        yield from texts_of(inner, (*path, name))


def with_secret(text: str) -> str:
    return json.dumps({**json.loads(text), "environment": {"DB_PASSWD": "the-password"}})


@pytest.mark.parametrize("kind", sorted(JOBS))
def test_a_secret_at_any_place_of_a_job_is_in_no_result_and_no_message(kind: str) -> None:
    outcomes = set()
    for job in planted(JOBS[kind]):
        try:
            text = told(import_described(job, DECISIONS, s3=files()))
        except JobNotImportable as error:
            text = str(error)
        outcomes.add("not repeated" in text)
        assert "the-password" not in text
    assert outcomes == {True, False}


def test_a_secret_in_the_files_of_the_drivers_is_in_no_result_and_no_message() -> None:
    for source_code in planted(SOURCE_CODE):
        with pytest.raises(JobNotImportable) as error:
            import_described(JOBS["sdk 3"], DECISIONS, s3=files(source_code))
        assert "source_code." in str(error.value)
        assert "the-password" not in str(error.value)


@pytest.mark.parametrize("name", ["basic", "channels", "network"])
def test_a_secret_at_any_place_of_a_trainer_is_in_no_result_and_no_message(name: str) -> None:
    trainer = {key: value for key, value in CAPTURED[name]["trainer"].items() if key != "class"}
    trainer["tags"] = [{"key": "db_password", "value": "hunter2!"}]
    assert "hunter2!" not in told(from_model_trainer(as_object(trainer), DECISIONS))
    for changed in planted(trainer):
        try:
            text = told(from_model_trainer(as_object(changed), DECISIONS))
        except JobNotImportable as error:
            text = str(error)
        assert "the-password" not in text
