"""Two executions side by side: only what is alike is compared, and a change is claimed only where
it shows.
"""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.run_samples import (
    PRICE,
    completed_results,
    failed_result,
    known,
    make_attempt,
    make_suite,
)
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.loss_parity import ParityFinding
from traindyno.core.run.workload import Workload
from traindyno.core.suite.choices import Jobs, Task
from traindyno.core.suite.goal import Pricing, SpotTerms
from traindyno.core.suite.suite import Measurement, Suite
from traindyno.core.verdict.comparison import (
    Change,
    ExecutionRecord,
    NotComparable,
    compare_executions,
)

INSTANCE = "ml.p4d.24xlarge"
STEADY = (1.0, 1.001, 0.999)
HALF = (0.5, 0.5005, 0.4995)


def suite_of(strategies: Sequence[str] = ("ddp",), **changes: Any) -> Suite:
    return make_suite(
        training={"instance": INSTANCE}, matrix={"strategy": tuple(strategies)}, **changes
    )


def record(
    name: str, suite: Suite, step_seconds: Sequence[float], **changes: Any
) -> ExecutionRecord:
    """Each cell has one trial for each of ``step_seconds``, the mean time of its steps."""
    cells = suite.cells
    results = completed_results(cells, *[step_seconds] * len(cells), suite=suite, **changes)
    return ExecutionRecord(execution_id=name, suite=suite, cells=cells, results=tuple(results))


def test_a_change_is_the_second_over_the_first_with_its_interval() -> None:
    (cell,) = compare_executions(
        record("old", suite_of(), STEADY), record("new", suite_of(), HALF)
    ).cells
    assert cell.rate is not None
    assert cell.rate.interval is not None
    # steps of half the time: twice the samples per second
    assert cell.rate.ratio == pytest.approx(2.0, rel=1e-6)
    assert cell.rate.interval.low < 2.0 < cell.rate.interval.high
    assert cell.change is Change.FASTER
    assert known(cell.usd).ratio < 1


def test_change_is_slower_with_the_executions_in_the_other_order() -> None:
    (cell,) = compare_executions(
        record("old", suite_of(), HALF), record("new", suite_of(), STEADY)
    ).cells
    assert cell.change is Change.SLOWER


def test_noise_is_no_change() -> None:
    noisy = record("new", suite_of(), (1.02, 0.98, 1.01))
    (cell,) = compare_executions(record("old", suite_of(), (1.0, 1.03, 0.97)), noisy).cells
    assert cell.change is Change.NO_DETECTABLE_DIFFERENCE


def test_one_trial_claims_nothing() -> None:
    (cell,) = compare_executions(
        record("old", suite_of(), (1.0,)), record("new", suite_of(), (0.5,))
    ).cells
    assert known(cell.rate).interval is None
    assert cell.change is Change.TOO_FEW_TRIALS


def test_an_unmeasured_cell_has_no_change() -> None:
    old = record("old", suite_of(), STEADY)
    failed = tuple(failed_result(old.cells[0], trial, Outcome.OUT_OF_MEMORY) for trial in (1, 2))
    (cell,) = compare_executions(old, replace(old, execution_id="new", results=failed)).cells
    assert (cell.rate, cell.change) == (None, Change.NOT_MEASURED)
    assert cell.second.outcomes == {"out_of_memory": 2}


def test_only_cells_of_the_same_configuration_are_compared() -> None:
    old = record("old", suite_of(["ddp", "fsdp"]), STEADY)
    new = record("new", suite_of(["fsdp", "zero1"]), STEADY)
    compared = compare_executions(old, new)
    assert [cell.label for cell in compared.cells] == ["fsdp"]
    assert (compared.only_first, compared.only_second) == (("ddp",), ("zero1",))


def test_nothing_in_common_is_refused() -> None:
    with pytest.raises(NotComparable, match="no cell in common"):
        compare_executions(
            record("old", suite_of(["ddp"]), STEADY), record("new", suite_of(["fsdp"]), STEADY)
        )


def test_unlike_work_is_refused_with_every_reason(snapshot: Snapshot) -> None:
    other = suite_of(workload=Workload(task=Task.MASKED_LM, examples=5))
    with pytest.raises(NotComparable) as caught:
        compare_executions(record("old", suite_of(), STEADY), record("new", other, STEADY))
    snapshot(str(caught.value).splitlines())


def test_another_script_and_other_measuring_are_named_and_not_refused() -> None:
    workload = Workload(
        task=Task.SCRIPT, examples=100_000, source="s3://b/one", entry_point="train.py"
    )
    old = suite_of(workload=workload)
    new = suite_of(
        workload=replace(workload, source="s3://b/two"), measurement=Measurement(max_steps=300)
    )
    compared = compare_executions(record("old", old, STEADY), record("new", new, STEADY))
    assert {setting.name: (setting.first, setting.second) for setting in compared.running} == {
        "workload.source": ("s3://b/one", "s3://b/two"),
        "measurement.max_steps": ("200", "300"),
    }


def test_different_versions_devices_and_prices_are_named() -> None:
    facts = {"versions": {"torch": "2.13.0"}, "device_name": "NVIDIA A100-SXM4-40GB"}
    newer = {"versions": {"torch": "2.14.0"}, "device_name": "NVIDIA A100-SXM4-40GB"}
    dearer = replace(PRICE, usd_per_instance_hour=Decimal("40.0"))
    compared = compare_executions(
        record("old", suite_of(), STEADY, facts=facts),
        record("new", suite_of(), STEADY, price=dearer, facts=newer),
    )
    assert {version.name: (version.first, version.second) for version in compared.environment} == {
        "versions.torch": ("2.13.0", "2.14.0"),
        f"price of {INSTANCE}": ("$36.00/h", "$40.00/h"),
    }


def test_a_runs_place_in_its_job_is_no_difference_and_its_start_is() -> None:
    """Places are drawn anew in each execution."""
    old, new = (
        record(
            name, suite_of(), STEADY, facts={"shared_job": {"place": place, "forked": place > 1}}
        )
        for name, place in (("old", 1), ("new", 3))
    )
    compared = compare_executions(old, new)
    assert {version.name: (version.first, version.second) for version in compared.environment} == {
        "shared_job.forked": ("False", "True")
    }


def test_an_execution_against_itself_differs_in_nothing() -> None:
    old = record("old", suite_of(), STEADY)
    compared = compare_executions(old, replace(old, execution_id="new"))
    (cell,) = compared.cells
    assert cell.change is Change.NO_DETECTABLE_DIFFERENCE
    assert known(cell.rate).ratio == 1
    assert known(cell.parity).finding is not ParityFinding.DIFFERS
    assert (compared.running, compared.environment) == ((), ())


def with_fault(execution_record: ExecutionRecord) -> ExecutionRecord:
    """The first attempt of its first run was lost to a fault of the service."""
    lost = make_attempt(
        outcome=None, error="ServiceFault", billable_seconds=90.0, phase_seconds={"training": 90.0}
    )
    first, *others = execution_record.results
    return replace(
        execution_record, results=(replace(first, attempts=(lost, *first.attempts)), *others)
    )


def test_a_fault_in_one_execution_is_no_change_of_time() -> None:
    """The rate at which capacity fails is that of both executions' runs, so that it cancels."""
    suite = suite_of(examples=20_000)
    old = record("old", suite, STEADY)
    new = record("new", suite, STEADY)
    (cell,) = compare_executions(old, with_fault(new)).cells
    assert cell.first.hosts.hazard == cell.second.hosts.hazard
    assert known(cell.first.hosts.hazard).count == 1
    assert known(cell.seconds).ratio == pytest.approx(1.0, abs=1e-9)


def test_interruptions_expected_by_one_execution_are_expected_of_both() -> None:
    spot = {INSTANCE: SpotTerms(discount=0.5, interruptions_per_hour=2.0)}
    suite = suite_of(examples=20_000)
    price = replace(PRICE, purchase="spot")
    old = record("old", suite, STEADY, price=price)
    new = record("new", suite, STEADY, price=price)
    (cell,) = compare_executions(
        replace(old, suite=replace(suite, pricing=Pricing(spot=spot))), new
    ).cells
    assert cell.second.hosts.hazard is not None
    assert cell.second.hosts.hazard.source == "given in the suite"
    assert cell.first.hosts.hazard == cell.second.hosts.hazard


def test_shared_jobs_are_a_named_difference_and_cells_stay_comparable() -> None:
    shared = suite_of(measurement=Measurement(jobs=Jobs.SHARED))
    separate = suite_of(measurement=Measurement(jobs=Jobs.SEPARATE))
    compared = compare_executions(record("old", separate, STEADY), record("new", shared, STEADY))
    assert {setting.name: (setting.first, setting.second) for setting in compared.running} == {
        "measurement.jobs": ("separate", "shared")
    }
    assert [cell.change for cell in compared.cells] == [Change.NO_DETECTABLE_DIFFERENCE]


def test_executions_of_this_machine_differ_by_more_than_their_runs() -> None:
    """Its level changes from one execution to the next, by other work that nobody sees."""
    suite = make_suite(training={"instance": "local.cpu"}, matrix={"strategy": ("ddp",)})
    old, slower, far = (
        record(name, suite, [factor * seconds for seconds in STEADY])
        for name, factor in (("old", 1.0), ("slower", 1.3), ("far", 4.0))
    )
    (near_cell,) = compare_executions(old, slower).cells
    (far_cell,) = compare_executions(old, far).cells
    assert near_cell.change is Change.NO_DETECTABLE_DIFFERENCE
    assert far_cell.change is Change.SLOWER
