"""Stored documents of older versions are migrated; what can't be read is refused with what was found and accepted."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.run_samples import completed_result, make_cell
from tests.unit.suites import small_suite
from traindyno.core.documents.versions import Format, VersionUnknown
from traindyno.core.measurement.run_result import parse_run_result, run_result_document
from traindyno.core.planning.plan import read_stored_plan
from traindyno.core.suite.suite_file import read_stored_suite, stored_suite, suite_document
from traindyno.core.suite.tokens_manifest import describe_mismatch, tokens_manifest
from traindyno.core.verdict.report_data import parse_report
from traindyno.core.verdict.verdict import parse_verdict


def renamed(document: dict[str, Any]) -> dict[str, Any]:
    return {"seconds": document["time"]}


def in_milliseconds(document: dict[str, Any]) -> dict[str, Any]:
    return {"milliseconds": document["seconds"] * 1000}


TIMES = Format(name="times", version=4, migrations={2: renamed, 3: in_milliseconds})


def test_migrations_lead_from_an_older_version_to_todays() -> None:
    assert TIMES.read({"version": 2, "time": 5}) == {"milliseconds": 5000}
    assert TIMES.read({"version": 3, "seconds": 5}) == {"milliseconds": 5000}
    assert TIMES.read(TIMES.mark({"milliseconds": 1})) == {"milliseconds": 1}


@pytest.mark.parametrize(
    ("version", "says"),
    [
        (5, "times: expected version 2 to 4, got 5: a newer Traindyno wrote it, so update this one"),
        (1, "times: expected version 2 to 4, got 1"),
        (True, "times: expected version 2 to 4, got true"),
        ("3", 'times: expected version 2 to 4, got "3"'),
        (None, "times: expected version 2 to 4, got nothing"),
    ],
)
def test_what_no_migration_leads_from_is_refused(version: object, says: str) -> None:
    with pytest.raises(VersionUnknown) as refused:
        TIMES.read({"version": version})
    assert str(refused.value) == says


def test_a_document_without_a_version_may_be_of_a_known_one() -> None:
    first = Format(name="first", version=2, migrations={1: renamed}, unmarked=1)
    assert first.read({"time": 3}) == {"seconds": 3}


READERS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "stored suite": read_stored_suite,
    "stored plan": read_stored_plan,
    "run result": parse_run_result,
    "verdict": parse_verdict,
    "report data": parse_report,
}


@pytest.mark.parametrize("name", READERS)
def test_every_stored_document_of_a_newer_version_is_refused_by_name(name: str) -> None:
    with pytest.raises(VersionUnknown, match=rf"^{name}: expected version .* got 99: a newer Traindyno wrote it"):
        READERS[name]({"version": 99})


def test_a_stored_suite_has_a_version_and_one_from_before_is_read_alike() -> None:
    suite = small_suite()
    assert stored_suite(suite)["version"] == 1
    assert read_stored_suite(stored_suite(suite)) == suite
    assert read_stored_suite(suite_document(suite)) == suite


def test_a_run_result_of_version_1_has_its_examples_in_its_projection() -> None:
    result = completed_result(make_cell(), 1)
    document = run_result_document(result)
    assert document.pop("version") == 2
    first = {**document, "version": 1, "projection": {"examples": document.pop("examples")}}
    assert parse_run_result(first) == parse_run_result(run_result_document(result))


def test_tokens_of_another_version_are_a_mismatch() -> None:
    manifest = tokens_manifest("k", {})
    assert describe_mismatch(manifest, key="k") is None
    assert describe_mismatch({**manifest, "version": 9}, key="k") == (
        "traindyno-tokens.json: expected version 1, got 9: a newer Traindyno wrote it, so update this one"
    )
