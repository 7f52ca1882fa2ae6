"""Estimates before the first run: they move as memory and time do, and hold on published steps of
others. What was measured stands beside them: in the report, and in `traindyno list --projected`.
"""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from bench.estimates import (
    FOLDER,
    deviations_of,
    errors,
    fit,
    init_deviations,
    published,
    widths,
)
from tests.unit.lab_in_memory import EXECUTION, MemoryLab
from tests.unit.planned_lab import empty_lab, take_in
from tests.unit.run_samples import completed_result, failed_result, make_cell, remeasured
from tests.unit.slices.training.test_report import finished, listed
from tests.unit.suites import unprepared_document, unprepared_suite
from traindyno.core.costs.prices import Price, PriceList
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.planning.memory import MemoryFinding, finding_of, usable_memory_bytes
from traindyno.core.planning.model_shape import ModelShape
from traindyno.core.planning.peak_lines import PeakLines, ProcessPeak
from traindyno.core.run.processes import world_size
from traindyno.core.run.settings import Settings
from traindyno.core.s3_keys import report_html_key
from traindyno.core.suite.choices import Precision, Strategy
from traindyno.slices.estimates.candidates import (
    EstimatedWork,
    choose,
    estimate_candidate,
    find_candidates,
    usual_candidate,
)
from traindyno.slices.estimates.first_suite_text import estimate_texts
from traindyno.slices.estimates.report import measured_bytes, measured_seconds, measured_usd
from traindyno.slices.estimates.step_time import (
    TERMS,
    Division,
    deviation_of,
    device_of,
    fitted,
)

SHAPE = ModelShape(
    parameters=1_300_000_000,
    flops_per_token=9e9,
    layers=24,
    hidden_size=2048,
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


GB = 10**9


def memory(settings: Settings) -> MemoryFinding:
    """What the strategy holds of 16 bytes a parameter, and 2 GB a sample, or 0.2 recomputed."""
    processes = world_size(settings) or 1
    sharded = {Strategy.FSDP: 16, Strategy.ZERO1: 8}.get(settings.strategy, 0)
    held = SHAPE.parameters * (16 - sharded + sharded / processes)
    sample = 0.2 * GB if settings.activation_checkpointing else 2.0 * GB
    of_process = ProcessPeak(parameter_bytes=1, optimizer_bytes=1, lines=((held, sample),))
    return finding_of(settings, lines=PeakLines(processes=(of_process,)), whole=None)


WORK = EstimatedWork(shape=SHAPE, examples=10_000, prices=PRICES, memory=memory)


@pytest.mark.parametrize(
    ("instance", "told"),
    [
        ("local.cpu", "not estimated: the device's is unknown"),
        ("ml.p4d.24xlarge", "unknown of 35.8 GiB"),
    ],
)
def test_of_a_device_with_unknown_memory_no_estimate_is_promised(instance: str, told: str) -> None:
    work = EstimatedWork(examples=1, prices=PRICES)
    candidate = estimate_candidate(work, replace(SETTINGS, instance=instance))
    assert estimate_texts(candidate, {})["memory"] == told


def test_the_first_fitting_strategy_ends_the_search() -> None:
    """An A10G has 22.4 GB for tensors, 15.4 below the upper end: 20.8 GB of state on one device or
    four in full are not estimated, and 1.3 × (8 + 8 / 4) = 13 GB of zero1 leave room for a sample.
    """
    asked: list[Settings] = []

    def find(settings: Settings) -> MemoryFinding:
        asked.append(settings)
        return memory(settings)

    (candidate,) = find_candidates(
        replace(WORK, memory=find), ["ml.g5.xlarge", "ml.g5.12xlarge"], [1]
    )
    assert (candidate.settings.strategy, candidate.settings.batch_size) == (Strategy.ZERO1, 1)
    assert {settings.strategy for settings in asked} == {Strategy.ZERO1}
    assert {settings.precision for settings in asked} == {Precision.BF16}
    asked.clear()
    huge = replace(SHAPE, parameters=40 * SHAPE.parameters)
    assert find_candidates(replace(WORK, shape=huge, memory=find), PRICES, [1]) == []
    assert asked == [], "of 52 billion parameters no device holds the state"


def test_late_estimates_are_left_to_the_plan() -> None:
    def find(settings: Settings) -> MemoryFinding:
        return MemoryFinding(why_unknown="later")

    (candidate,) = find_candidates(replace(WORK, memory=find), ["ml.p4d.24xlarge"], [1])
    assert (candidate.settings.strategy, candidate.settings.batch_size) == (Strategy.FSDP, 1)
    assert candidate.settings.activation_checkpointing
    assert (candidate.fits, candidate.memory_bytes) == (None, None)
    assert candidate.seconds is not None
    assert usual_candidate(replace(WORK, memory=find), candidate.settings) is None


def test_the_weights_come_from_the_benchmarks_fit() -> None:
    stored = fitted()["step_time"]["weights"]
    terms = dict(zip(TERMS, fit(list(published(FOLDER))), strict=True))
    assert stored == pytest.approx(terms, rel=0.02, abs=0.02)
    for name in ("NVIDIA A100 80GB", "NVIDIA H100"):
        device = device_of(name)
        assert device is not None
        assert device.rows == sum(row.device == device for row in published(FOLDER))


def test_intervals_hold_for_steps_of_a_left_out_family() -> None:
    """Of four authors' tables, each with another trainer: weights are of the other three, and
    deviations of all, by the way in which steps are divided.
    """
    rows = list(published(FOLDER))
    deviations = deviations_of(rows)
    for family in {row.family for row in rows}:
        own = [row for row in rows if row.family == family]
        errors_of_family = np.abs(errors(own, fit([row for row in rows if row.family != family])))
        assert 0.8 <= np.mean(errors_of_family < widths(own, deviations)) <= 0.98, family
        errors_of_family = np.abs(errors(own, fit(rows)))
        assert 0.9 <= np.mean(errors_of_family < widths(own, deviations)) <= 0.98, family
    assert init_deviations() == pytest.approx(deviations, abs=0.012)
    most = fitted()["step_time"]["ways"]
    for way in deviations:
        sizes = [row.shape.parameters for row in rows if row.division.way == way]
        assert most[way]["most_parameters"] == pytest.approx(max(sizes), rel=0.005)


def test_a_model_larger_than_all_published_ones_has_the_widest_interval() -> None:
    device = device_of("NVIDIA H100")
    assert device is not None
    deviations = [
        deviation_of(replace(SHAPE, parameters=int(billions * 1e9)), division, device)
        for division in (Division(batch=1, replicas=8), Division(batch=1, replicas=8, pipeline=8))
        for billions in (8, 80)
    ]
    assert deviations == [0.24, 0.57, 0.51, 0.57]
    other = device_of("NVIDIA B200")
    assert other is not None
    assert deviation_of(SHAPE, Division(batch=1, replicas=8), other) == 0.5


def test_candidates_fit_by_the_upper_end_and_are_in_the_order_of_the_goal() -> None:
    candidates = find_candidates(WORK, PRICES, [1, 2])
    assert candidates
    for candidate in candidates:
        assert candidate.memory_bytes is not None
        assert candidate.device_bytes is not None
        assert candidate.memory_bytes.high <= candidate.device_bytes
        larger = replace(
            candidate.settings, batch_size_per_device=2 * candidate.settings.batch_size
        )
        assert candidate.settings.batch_size == 64 or not estimate_candidate(WORK, larger).fits
    by_cost, by_time = (choose(candidates, is_time=is_time, most=4) for is_time in (False, True))
    costs = [candidate.usd.mean for candidate in by_cost if candidate.usd]
    times = [candidate.seconds.mean for candidate in by_time if candidate.seconds]
    assert (len(costs), costs) == (len(by_cost), sorted(costs))
    assert (len(times), times) == (len(by_time), sorted(times))
    usual = usual_candidate(WORK, by_cost[0].settings)
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
def test_unmeasured_settings_have_no_time(settings: Settings) -> None:
    """A NeuronCore, this machine, and a network of unknown speed."""
    candidate = estimate_candidate(WORK, settings)
    assert (candidate.seconds, candidate.usd, candidate.evidence) == (None, None, "no basis")


EAGER, COMPILED = unprepared_suite().cells


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


def test_the_history_has_the_estimates_of_each_cell_with_its_measurements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    document = json.loads(listed(measured(), monkeypatch, "--format", "json"))
    (row,) = document["executions"]
    assert (row["execution_id"], row["of"]) == (EXECUTION, "estimates")
    quantities = [
        (quantity.get("cell"), quantity["quantity"], quantity["side"])
        for quantity in row["compared"]
    ]
    assert quantities == [
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


def test_time_is_for_all_examples_and_memory_the_largest_peak() -> None:
    cell = make_cell()
    results = [
        remeasured(completed_result(cell, trial), samples_per_second=rate)
        for trial, rate in ((1, 10), (2, 20))
    ]
    examples = results[0].examples
    assert measured_seconds(results) == pytest.approx((examples / 10 + examples / 20) / 2)
    assert measured_usd(unprepared_suite(purchase="spot"), results) is None
    peaks = [
        remeasured(result, peak_memory_bytes=size)
        for result, size in zip(results, (5, 7), strict=True)
    ]
    assert measured_bytes(peaks) == 7
    assert (measured_bytes([]), measured_seconds([])) == (None, None)


def test_a_cell_without_enough_memory_needed_all_of_its_device() -> None:
    cell = make_cell()
    out = failed_result(cell, 1, Outcome.OUT_OF_MEMORY)
    assert measured_bytes([completed_result(cell, 2), out]) == usable_memory_bytes(
        cell.settings.instance
    )
    assert measured_seconds([out]) is None
