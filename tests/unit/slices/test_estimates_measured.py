"""What `init` estimated stands beside what was measured: in the report, and in `traindyno list --projected`."""

import json
from typing import Any

import pytest

from tests.unit.lab_in_memory import EXECUTION, MemoryLab
from tests.unit.planned_lab import empty_lab, take_in
from tests.unit.run_samples import completed_result, failed_result, make_cell, remeasured
from tests.unit.slices.training.test_report import finished, listed
from tests.unit.suites import unprepared_document, unprepared_suite
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.memory import usable_memory_bytes
from traindyno.core.s3_keys import report_html_key
from traindyno.core.suite.cells import expand_cells
from traindyno.slices.estimates.report import measured_bytes, measured_seconds, measured_usd

EAGER, COMPILED = expand_cells(unprepared_suite())


def rounded(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean / 2, "high": 2 * mean}


def measured(**changes: Any) -> MemoryLab:
    """A lab in memory has 40 steps of 8 samples that take 0.5 s, at $1.20 an hour, and peaks of about 1000 bytes."""
    cells = {
        EAGER.cell_id: {"memory_bytes": rounded(2000), "seconds": rounded(625), "usd": rounded(0.2)},
        COMPILED.cell_id: {"memory_bytes": rounded(400)},
        "ffffffff": {"seconds": rounded(1)},
    }
    estimates = {"examples": 10_000, "sequence_length": 128, "cells": cells, **changes}
    lab = empty_lab()
    take_in(lab, unprepared_document(measurement={"trials": 1}, estimates=estimates))
    finished(lab)
    return lab


def test_the_history_has_the_estimates_of_each_cell_with_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    document = json.loads(listed(measured(), monkeypatch, "--format", "json"))
    (row,) = document["executions"]
    assert (row["execution_id"], row["of"]) == (EXECUTION, "estimates")
    found = [(each.get("cell"), each["quantity"], each["side"]) for each in row["compared"]]
    assert found == [
        (EAGER.label, "memory", "inside"),
        (EAGER.label, "time", "inside"),
        (EAGER.label, "cost", "inside"),
        (COMPILED.label, "memory", "above"),
    ]
    memory = document["ratios"]["estimates"]["memory"]
    assert (memory["count"], memory["intervals"], memory["inside"]) == (2, 2, 1)
    time, cost = row["compared"][1:3]
    # the cost of that time, at $1.20 an hour
    assert cost["actual"] == pytest.approx(time["actual"] * 1.2 / 3600)
    table = listed(measured(), monkeypatch)
    assert f"estimates: {EAGER.label}" in table
    assert f"estimates: {COMPILED.label}" in table


def test_the_report_has_them_too() -> None:
    page = measured().bucket.read(report_html_key(EXECUTION)).decode()
    assert '<a href="#estimates">Estimated and measured</a>' in page
    assert ">Estimated</th>" in page
    without = measured(cells={}).bucket.read(report_html_key(EXECUTION)).decode()
    assert "Estimated and measured" not in without


@pytest.mark.parametrize("changes", [{"examples": 20_000}, {"sequence_length": 256}])
def test_estimates_of_another_workload_are_not_compared(
    changes: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert json.loads(listed(measured(**changes), monkeypatch, "--format", "json"))["executions"] == []


def test_time_is_that_of_all_examples_and_memory_the_largest_peak() -> None:
    cell = make_cell()
    results = [remeasured(completed_result(cell, trial), samples_per_second=rate) for trial, rate in ((1, 10), (2, 20))]
    examples = results[0].examples
    assert measured_seconds(results) == pytest.approx((examples / 10 + examples / 20) / 2)
    assert measured_usd(unprepared_suite(purchase="spot"), results) is None
    peaks = [remeasured(each, peak_memory_bytes=size) for each, size in zip(results, (5, 7), strict=True)]
    assert measured_bytes(peaks) == 7
    assert (measured_bytes([]), measured_seconds([])) == (None, None)


def test_a_cell_that_ran_out_of_memory_needed_all_of_its_device() -> None:
    cell = make_cell()
    out = failed_result(cell, 1, Outcome.OUT_OF_MEMORY)
    assert measured_bytes([completed_result(cell, 2), out]) == usable_memory_bytes(cell.settings.instance)
    assert measured_seconds([out]) is None
