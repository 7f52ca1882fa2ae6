"""Stored documents of older versions are migrated; what can't be read is refused with what was found and accepted."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.run_samples import completed_result, make_cell, make_run, make_suite
from tests.unit.suites import small_document, small_suite
from traindyno.core.documents.versions import Format, VersionUnknown
from traindyno.core.jobs.job import Job
from traindyno.core.measurement.preparation_result import parse_preparation_result
from traindyno.core.measurement.run_result import parse_run_result, run_result_document
from traindyno.core.planning.jobs import separate_job
from traindyno.core.planning.memory import MemoryEstimate, MemoryFinding, findings_document, parse_findings
from traindyno.core.planning.plan import plan_suite, read_stored_plan, stored_plan
from traindyno.core.planning.wave_items import run_ids_of, wave_items
from traindyno.core.serving.samples import parse_samples
from traindyno.core.statistics.hosts import HostClass, HostSpread
from traindyno.core.suite.checks.accepted_suite import parse_suite
from traindyno.core.suite.choices import Jobs
from traindyno.core.suite.suite_file import read_stored_suite, stored_suite, suite_document
from traindyno.core.suite.tokens_manifest import (
    TokensMarker,
    describe_mismatch,
    parse_tokens_marker,
    tokens_manifest,
    tokens_marker_document,
)
from traindyno.core.verdict.report_data import parse_report
from traindyno.core.verdict.verdict import judge, parse_verdict


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
        (5, "times: got version 5 of a newer Traindyno (update this one), expected 2 to 4"),
        (1, "times: got version 1, expected 2 to 4"),
        (True, "times: got version true, expected 2 to 4"),
        ("3", 'times: got version "3", expected 2 to 4'),
        (None, "times: got no version, expected 2 to 4"),
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
    "preparation result": parse_preparation_result,
    "evaluation samples": parse_samples,
    "tokens marker": parse_tokens_marker,
    "memory findings": parse_findings,
    "wave item": lambda document: run_ids_of([document]),
}


@pytest.mark.parametrize("name", READERS)
def test_every_stored_document_of_a_newer_version_is_refused_by_name(name: str) -> None:
    with pytest.raises(VersionUnknown, match=rf"^{name}: got version 99 of a newer Traindyno .*, expected "):
        READERS[name]({"version": 99})


def test_a_stored_suite_has_a_version_and_one_from_before_is_read_alike() -> None:
    suite = small_suite()
    assert stored_suite(suite)["version"] == 1
    assert read_stored_suite(stored_suite(suite)) == suite
    assert read_stored_suite(suite_document(suite)) == suite


@pytest.mark.parametrize("measurement", [{}, {"trials": 2}, None])
def test_a_stored_suite_of_before_shared_jobs_has_separate_ones(measurement: dict[str, int] | None) -> None:
    """So an execution in progress over an update carries on as it was planned, and a comparison tells the two apart."""
    document = {**stored_suite(small_suite()), "measurement": measurement}
    if measurement is None:
        del document["measurement"]
    assert read_stored_suite(document).measurement.jobs is Jobs.SEPARATE
    assert parse_suite(small_document()).measurement.jobs is Jobs.SHARED
    assert stored_suite(small_suite())["measurement"]["jobs"] == "shared"


def test_a_run_result_of_version_1_has_its_examples_in_its_projection() -> None:
    result = completed_result(make_cell(), 1)
    document = run_result_document(result)
    assert document.pop("version") == 2
    first = {**document, "version": 1, "projection": {"examples": document.pop("examples")}}
    assert parse_run_result(first) == parse_run_result(run_result_document(result))


@pytest.mark.parametrize("version", [{"version": 1}, {}])
def test_a_stored_plan_of_version_1_keeps_what_earlier_executions_showed_of_hosts(version: dict[str, int]) -> None:
    """It had one prior for all classes, and the verdict has to name it."""
    suite = make_suite(matrix={"strategy": ("ddp", "fsdp")}, training={"instance": "ml.p4d.24xlarge"})
    plan = plan_suite(suite, execution_id="execution-1", prices={}, quotas={}, histories={})
    document = stored_plan(plan)
    assert document.pop("version") == 2
    assert document.pop("host_priors") is None
    prior: dict[str, Any] = {"deviation": 0.011, "degrees_of_freedom": 7, "source": "history"}
    found = read_stored_plan({**document, **version, "host_prior": prior})
    assert found == replace(plan, host_priors=dict.fromkeys(HostClass, HostSpread(**prior)))
    results = [completed_result(cell, trial, suite=suite) for cell in plan.cells for trial in (1, 2, 3)]
    verdict = judge(suite, found.cells, results, host_priors=found.host_priors)
    assert (verdict.host_spread.deviation, verdict.host_spread.source) == (0.011, "history")
    assert read_stored_plan({**document, **version, "host_prior": None}) == plan
    assert read_stored_plan(stored_plan(found)) == found


def test_tokens_of_another_version_are_a_mismatch() -> None:
    manifest = tokens_manifest("k", {})
    assert describe_mismatch(manifest, key="k") is None
    assert describe_mismatch({**manifest, "version": 9}, key="k") == (
        "traindyno-tokens.json: got version 9 of a newer Traindyno (update this one), expected 1"
    )


def test_a_tokens_marker_has_a_version_and_one_from_before_is_read_alike() -> None:
    marker = TokensMarker(s3_uri="s3://results/tokens/k/job/", made_at=1_790_000_000.5)
    document = tokens_marker_document(marker, key="k", job_name="job", manifest=tokens_manifest("k", {}))
    assert document.pop("version") == 1
    assert parse_tokens_marker({**document, "version": 1}) == marker
    assert parse_tokens_marker(document) == marker


def test_memory_findings_have_a_version_and_the_list_from_before_is_read_alike() -> None:
    estimate = MemoryEstimate(peak_bytes=8, parameter_bytes=1, gradient_bytes=1, optimizer_bytes=2)
    findings = {make_cell().settings: MemoryFinding(estimate=estimate)}
    document = findings_document(findings)
    assert document["version"] == 1
    assert parse_findings(document) == findings
    assert parse_findings(document["findings"]) == findings


def test_the_items_of_a_wave_are_a_list_and_each_has_a_version() -> None:
    """Step Functions reads the items of a Distributed Map from a list only."""
    runs = [make_run(make_cell(), trial) for trial in (1, 2)]
    items = wave_items(map(separate_job, runs), make_suite().limits)
    assert [item.pop("version") for item in items] == [1, 1]
    assert run_ids_of([{**item, "version": 1} for item in items]) == ("0000000a-t1", "0000000a-t2")
    assert run_ids_of(items) == ("0000000a-t1", "0000000a-t2")
    shared = wave_items([Job(execution_id="e", job_id="j1-b1", runs=tuple(runs))], make_suite().limits)
    assert run_ids_of(shared) == ("0000000a-t1", "0000000a-t2")
