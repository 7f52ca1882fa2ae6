"""What the report's pictures show: trade-offs, axes, hosts and the search's path."""

from dataclasses import replace

import pytest

from tests.unit.run_samples import completed_result, failed_result, make_suite
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.measured_run import RunEnvironment
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.axes import find_axes, map_heat
from traindyno.core.verdict.host_effects import find_host_effects
from traindyno.core.verdict.search_path import Round, follow_search
from traindyno.core.verdict.trade_off import find_trade_offs
from traindyno.core.verdict.verdict import judge


def suite_of() -> Suite:
    return make_suite(
        matrix={
            "instance_count": (10, 1, 2),
            "strategy": (Strategy.DDP, Strategy.FSDP),
            "loader_workers": (0, 4),
        },
        training={"instance": "ml.p4d.24xlarge"},
    )


def results_of(suite: Suite, *, trials: int = 1) -> list[RunResult]:
    """More instances are faster and dearer; FSDP and no loader workers are slower. 10 instances run out of memory."""
    results = []
    for cell in expand_cells(suite):
        settings = cell.settings
        slower = (1.2 if settings.strategy is Strategy.FSDP else 1) * (1 if settings.loader_workers else 1.1)
        for trial in range(1, trials + 1):
            if settings.instance_count == 10:
                results.append(failed_result(cell, trial, Outcome.OUT_OF_MEMORY))
                continue
            seconds = slower / settings.instance_count**0.9
            results.append(completed_result(cell, trial, step_seconds=seconds, suite=suite))
    return results


def test_the_front_holds_the_cells_that_none_beats_in_both() -> None:
    suite = suite_of()
    verdict = judge(suite, expand_cells(suite), results_of(suite))
    found = find_trade_offs(verdict)
    front = [each.row.label for each in found if each.is_on_front]
    assert len(found) == 8
    assert [label.split(" ·")[0] for label in front] == ["2 × ml.p4d.24xlarge", "1 × ml.p4d.24xlarge"]
    assert all("ddp" in label and "4 loader workers" in label for label in front)
    fastest = found[0].row.cell_id
    refused = find_trade_offs(replace(verdict, refused={fastest: "a reason"}))
    assert not refused[0].is_on_front
    assert refused[1].is_on_front


def test_axes_are_the_settings_that_vary_with_numbers_in_order() -> None:
    axes = {axis.name: axis.values for axis in find_axes(expand_cells(suite_of()))}
    assert axes == {
        "instance_count": ("1", "2", "10"),
        "strategy": ("ddp", "fsdp"),
        "loader_workers": ("0", "4"),
    }


def test_a_heat_map_shows_the_best_cell_of_each_pair_of_values() -> None:
    suite = suite_of()
    cells = expand_cells(suite)
    verdict = judge(suite, cells, results_of(suite))
    maps = {(each.columns.name, each.rows.name): each for each in map_heat(cells, verdict)}
    assert len(maps) == 3
    found = {(box.column, box.row): box for box in maps["instance_count", "strategy"].crossings}
    assert len(found) == 6
    best = found["1", "ddp"]
    assert (best.cell_count, best.cell_id) == (2, verdict.recommended)
    assert best.measure == pytest.approx(verdict.row(best.cell_id or "").usd.mean)  # type: ignore[union-attr]
    assert (found["10", "fsdp"].cell_id, found["10", "fsdp"].measure) == (None, None)


def test_a_slow_host_shows_in_all_of_its_cells() -> None:
    suite = suite_of()
    results = []
    for result in results_of(suite, trials=2):
        if result.measured is None or result.measured.throughput is None:
            continue
        host, factor = ("i-slow", 0.9) if result.run.trial == 1 else ("i-fast", 1.0)
        throughput = replace(
            result.measured.throughput, samples_per_second=result.measured.throughput.samples_per_second * factor
        )
        environment = RunEnvironment(world_size=1, hosts=("algo-1",), facts={}, host_ids=(host,))
        results.append(
            replace(result, measured=replace(result.measured, throughput=throughput), environment=environment)
        )
    slow, fast = find_host_effects(results)
    assert (slow.host, len(slow.trials)) == ("i-slow", 8)
    # each cell's mean is the geometric one of 0.9 and 1
    assert slow.mean_rate == pytest.approx(0.9**0.5)
    assert fast.mean_rate == pytest.approx(0.9**-0.5)
    assert find_host_effects([each for each in results if each.run.trial == 1]) == ()


def test_the_path_counts_each_rounds_trials_and_billed_instance_seconds() -> None:
    suite = suite_of()
    results = [each for each in results_of(suite, trials=2) if each.run.cell.settings.instance_count == 2]
    first = [each.run.run_id for each in results if each.run.trial == 1]
    again = [results[1].run.run_id, "a-run-that-was-lost"]
    one, two = follow_search([Round(number=2, run_ids=tuple(again)), Round(number=1, run_ids=tuple(first))], results)
    assert (one.number, one.planned, set(one.trials.values())) == (1, 4, {1})
    assert (two.number, two.planned, two.trials) == (2, 2, {results[1].run.cell.cell_id: 1})
    assert two.billable_seconds == pytest.approx(2 * (results[1].billable_seconds or 0))


def test_a_setting_that_only_some_cells_name_has_its_default_in_the_others() -> None:
    """An included cell with an image of its own."""
    suite = make_suite(
        matrix={"loader_workers": (0, 4)},
        training={"instance": "ml.p4d.24xlarge"},
        include=({"image": "my/image:1"},),
    )
    cells = expand_cells(suite)
    verdict = judge(suite, cells, [completed_result(cell, 1, suite=suite) for cell in cells])
    (heat,) = map_heat(cells, verdict)
    assert {(each.column, each.row) for each in heat.crossings} == {
        ("0", "default"),
        ("4", "default"),
        ("0", "my/image:1"),
    }
