"""Estimates before the first run: they move as memory and time do, and hold on published steps of
others. What was measured stands beside them: in the report, and in `traindyno list --projected`.
"""

import json
from dataclasses import replace
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import pytest

from bench.estimates import FOLDER, deviation_of, errors, fit, init_deviation, published
from tests.unit.lab_in_memory import EXECUTION, MemoryLab
from tests.unit.planned_lab import empty_lab, take_in
from tests.unit.run_samples import completed_result, failed_result, make_cell, remeasured
from tests.unit.slices.training.test_report import finished, listed
from tests.unit.suites import unprepared_document, unprepared_suite
from traindyno.core.costs.prices import Price, PriceList
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.memory import usable_memory_bytes
from traindyno.core.s3_keys import report_html_key
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import OptimizerName, Precision, Strategy
from traindyno.core.suite.settings import Settings
from traindyno.slices.estimates.candidates import (
    choose,
    estimate_candidate,
    find_candidates,
    usual_candidate,
)
from traindyno.slices.estimates.memory import estimate_peak
from traindyno.slices.estimates.report import measured_bytes, measured_seconds, measured_usd
from traindyno.slices.estimates.step_time import NORMAL_90, TERMS, ModelShape, device_of, fitted

SHAPE = ModelShape(
    parameters=1_300_000_000,
    flops_per_token=9e9,
    layers=24,
    hidden_size=2048,
    intermediate_size=8192,
    vocabulary_size=50_000,
    sequence_length=1024,
)
SETTINGS = Settings(instance="ml.p4d.24xlarge", precision=Precision.BF16, batch_size_per_device=4)
PRICES: PriceList = {
    name: Price(
        instance_type=name,
        region="us-east-1",
        usd_per_hour=Decimal(usd),
        as_of="2026-11-27",
        source="the test",
    )
    for name, usd in {
        "ml.g5.xlarge": 1,
        "ml.g5.12xlarge": 5,
        "ml.p4d.24xlarge": 25,
        "ml.p5.48xlarge": 60,
    }.items()
}


def peak(shape: ModelShape = SHAPE, processes: int = 8, **changes: Any) -> float:
    found = estimate_peak(shape, replace(SETTINGS, **changes), processes)
    assert found is not None
    assert found.low < found.mean < found.high
    return found.mean


def test_memory_grows_with_what_is_held_and_shrinks_with_what_is_shared() -> None:
    for strategy, precision in product((Strategy.DDP, Strategy.ZERO1, Strategy.FSDP), Precision):
        of: dict[str, Any] = {"strategy": strategy, "precision": precision}
        assert peak(**of) < peak(**of, batch_size_per_device=8)
        assert peak(**of) < peak(replace(SHAPE, layers=48, parameters=2 * SHAPE.parameters), **of)
        assert peak(**of, activation_checkpointing=True) < peak(**of)
        assert peak(**of, optimizer=OptimizerName.SGD) < peak(**of)
    assert (
        peak(strategy=Strategy.FSDP) < peak(strategy=Strategy.ZERO1) < peak(strategy=Strategy.DDP)
    )
    assert peak(processes=16, strategy=Strategy.FSDP) < peak(strategy=Strategy.FSDP)
    # parameters and optimizer of 4 + 8 bytes, and no less
    assert peak() > 12 * SHAPE.parameters


def test_the_weights_are_those_that_the_benchmark_fits() -> None:
    stored = fitted()["step_time"]["weights"]
    found = dict(zip(TERMS, fit(list(published(FOLDER))), strict=True))
    assert stored == pytest.approx(found, rel=0.02, abs=0.02)
    for name in ("NVIDIA A100 80GB", "NVIDIA H100"):
        device = device_of(name)
        assert device is not None
        assert device.rows == sum(row.device == device for row in published(FOLDER))


def test_intervals_hold_for_steps_of_a_family_that_was_left_out() -> None:
    """Of four authors' tables, each with another trainer.

    Weights and deviation are of the other three.
    """
    rows = list(published(FOLDER))
    for family in {row.family for row in rows}:
        others = [row for row in rows if row.family != family]
        found = errors([row for row in rows if row.family == family], fit(others))
        # 39 of the 41 rows of several nodes are 95.1 %
        assert 0.85 <= np.mean(np.abs(found) < NORMAL_90 * deviation_of(others)) <= 0.955, family
    assert 0 <= init_deviation() - deviation_of(rows) < 0.01


def test_candidates_fit_by_the_upper_end_and_are_in_the_order_of_the_goal() -> None:
    found = find_candidates(SHAPE, 10_000, PRICES, [1, 2], PRICES)
    assert found
    for each in found:
        assert each.memory_bytes is not None
        assert each.device_bytes is not None
        assert each.memory_bytes.high <= each.device_bytes
        larger = replace(each.settings, batch_size_per_device=2 * each.settings.batch_size)
        assert (
            each.settings.batch_size == 64
            or not estimate_candidate(SHAPE, 10_000, larger, PRICES).fits
        )
    by_cost, by_time = (choose(found, is_time=is_time, most=4) for is_time in (False, True))
    costs = [each.usd.mean for each in by_cost if each.usd]
    times = [each.seconds.mean for each in by_time if each.seconds]
    assert (len(costs), costs) == (len(by_cost), sorted(costs))
    assert (len(times), times) == (len(by_time), sorted(times))
    usual = usual_candidate(SHAPE, 10_000, by_cost[0].settings, PRICES)
    assert usual is not None
    assert usual.fits
    assert usual.settings.batch_size <= 8


@pytest.mark.parametrize(
    "settings",
    [
        Settings(instance="ml.trn1.2xlarge"),
        Settings(instance="local.cpu"),
        replace(SETTINGS, instance="ml.g5.xlarge", instance_count=2),
    ],
)
def test_what_nothing_was_measured_of_has_no_time(settings: Settings) -> None:
    """A NeuronCore, this machine, and a network of unknown speed."""
    found = estimate_candidate(SHAPE, 10_000, settings, PRICES)
    assert (found.seconds, found.usd, found.evidence) == (None, None, "no basis")


EAGER, COMPILED = expand_cells(unprepared_suite())


def rounded(mean: float) -> dict[str, float]:
    return {"mean": mean, "low": mean / 2, "high": 2 * mean}


def measured(**changes: Any) -> MemoryLab:
    """A lab in memory has 40 steps of 8 samples that take 0.5 s, at $1.20 an hour, and peaks of
    about 1000 bytes.
    """
    cells = {
        EAGER.cell_id: {
            "memory_bytes": rounded(2000),
            "seconds": rounded(625),
            "usd": rounded(0.2),
        },
        COMPILED.cell_id: {"memory_bytes": rounded(400)},
        "ffffffff": {"seconds": rounded(1)},
    }
    estimates = {"examples": 10_000, "sequence_length": 128, "cells": cells, **changes}
    lab = empty_lab()
    take_in(lab, unprepared_document(measurement={"trials": 1}, estimates=estimates))
    finished(lab)
    return lab


def test_the_history_has_the_estimates_of_each_cell_with_what_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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
    assert (
        json.loads(listed(measured(**changes), monkeypatch, "--format", "json"))["executions"] == []
    )


def test_time_is_that_of_all_examples_and_memory_the_largest_peak() -> None:
    cell = make_cell()
    results = [
        remeasured(completed_result(cell, trial), samples_per_second=rate)
        for trial, rate in ((1, 10), (2, 20))
    ]
    examples = results[0].examples
    assert measured_seconds(results) == pytest.approx((examples / 10 + examples / 20) / 2)
    assert measured_usd(unprepared_suite(purchase="spot"), results) is None
    peaks = [
        remeasured(each, peak_memory_bytes=size) for each, size in zip(results, (5, 7), strict=True)
    ]
    assert measured_bytes(peaks) == 7
    assert (measured_bytes([]), measured_seconds([])) == (None, None)


def test_a_cell_that_ran_out_of_memory_needed_all_of_its_device() -> None:
    cell = make_cell()
    out = failed_result(cell, 1, Outcome.OUT_OF_MEMORY)
    assert measured_bytes([completed_result(cell, 2), out]) == usable_memory_bytes(
        cell.settings.instance
    )
    assert measured_seconds([out]) is None
