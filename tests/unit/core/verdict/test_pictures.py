"""Trade-offs of cost and time."""

from dataclasses import replace

from tests.unit.run_samples import completed_result, failed_result, make_suite
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_figures import find_trade_offs
from traindyno.core.verdict.verdict import judge


def suite_of() -> Suite:
    return make_suite(
        matrix={"instance_count": (10, 1, 2), "strategy": (Strategy.DDP, Strategy.FSDP), "loader_workers": (0, 4)},
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
