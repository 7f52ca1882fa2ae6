"""A constant global batch: accumulation follows from the batch per device and the replicas, or the
cell is refused.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.properties import examples
from tests.sentences import Snapshot
from tests.unit.run_samples import known
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.run.processes import (
    accumulation_steps,
    dividing_batches,
    global_batch_size,
    planned_batch_size,
    planned_learning_rate,
    replica_count,
    world_size,
)
from traindyno.core.run.settings import BatchSearch, LearningRate, Settings
from traindyno.core.search.largest_batch import LARGEST, MOST_PROBES, Probe, chosen, next_batch
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.checks.combinations import check_global_batch
from traindyno.core.suite.choices import BatchChoice, LearningRateScaling, Strategy
from traindyno.core.suite.runs import trained_settings
from traindyno.core.suite.suite import Run

INSTANCES = ("local.cpu", "ml.g5.12xlarge", "ml.p4d.24xlarge")


@st.composite
def divided_settings(draw: st.DrawFn) -> Settings:
    strategy = draw(
        st.sampled_from([Strategy.DDP, Strategy.FSDP, Strategy.TENSOR, Strategy.PIPELINE])
    )
    degree = {Strategy.TENSOR: "tensor_degree", Strategy.PIPELINE: "pipeline_degree"}.get(strategy)
    options: dict[str, Any] = {degree: draw(st.sampled_from([2, 4, 8]))} if degree else {}
    if strategy is Strategy.PIPELINE:
        options["micro_batches"] = draw(st.sampled_from([1, 2, 4, 8]))
    return Settings(
        instance=draw(st.sampled_from(INSTANCES)) if degree is None else "ml.p4d.24xlarge",
        instance_count=draw(st.integers(1, 6)),
        strategy=strategy,
        batch_size_per_device=draw(st.integers(1, 70)),
        global_batch_size=draw(
            st.integers(1, 5000) | st.sampled_from([960, 2520, *(2**power for power in range(14))])
        ),
        **options,
    )


def problems(settings: Settings) -> list[str]:
    return [
        problem.reason
        for problem in check_global_batch(settings, known(find_instance_type(settings.instance)))
    ]


def test_accepted_settings_keep_the_global_batch_and_refused_ones_could_not() -> None:
    accepted = 0

    @examples(1000)
    @given(divided_settings())
    def hold(settings: Settings) -> None:
        nonlocal accepted
        processes = known(world_size(settings))
        whole = settings.global_batch_size
        replicas = replica_count(settings, processes)
        kept = settings.batch_size * replicas * accumulation_steps(settings, processes)
        assert global_batch_size(settings, processes) == kept
        if not problems(settings):
            accepted += 1
            assert planned_batch_size(settings) == kept == whole
        else:
            assert kept != whole or settings.batch_size % settings.micro_batches
        for batch in dividing_batches(settings, processes) or ():
            given_batch = replace(settings, batch_size_per_device=batch)
            assert batch % settings.micro_batches == 0
            assert global_batch_size(given_batch, processes) == whole
            assert not problems(given_batch)

    hold()
    assert accepted > 20


@examples(400)
@given(divided_settings(), st.integers(1, 200), st.data())
def test_a_search_finds_the_largest_fitting_divisor_within_an_eighth(
    drawn: Settings, first: int, data: st.DataObject
) -> None:
    """Also the batch that is probed first, which simulated jobs measure, keeps the global batch."""
    settings = replace(
        drawn, batch_size_per_device=BatchSearch(search=BatchChoice.LARGEST, begin=first)
    )
    processes = known(world_size(settings))
    possible = dividing_batches(settings, processes) or ()
    assume(possible)
    assert not problems(settings)
    room = data.draw(st.integers(0, 2 * possible[-1]))
    probes: list[Probe] = []
    while (batch := next_batch(probes, first, possible)) is not None:
        assert batch in possible
        assert batch not in [probe.batch for probe in probes]
        probes.append(Probe(batch=batch, fits=batch <= room))
    assert len(probes) <= MOST_PROBES
    expected = max((size for size in possible if size <= room), default=None)
    if len(probes) < MOST_PROBES:
        largest = chosen(probes, LARGEST)
        assert (largest or 0) <= (expected or 0) <= 1.125 * (largest or 0)
    cell = Cell(cell_id="c", label="c", settings=settings, hyperparameters={})
    run = Run(run_id="c-t1", execution_id="e", trial=1, cell=cell)
    for searched in (run, replace(run, found_batch=possible[-1])):
        assert (
            global_batch_size(trained_settings(searched), processes) == settings.global_batch_size
        )


def test_the_learning_rate_of_a_searching_cell_follows_its_constant_global_batch() -> None:
    rate = LearningRate(
        base=1e-3, reference_batch_size=32, scale_with=LearningRateScaling.GLOBAL_BATCH
    )
    searching = Settings(
        instance="ml.unheard.of",
        batch_size_per_device=BatchSearch(search=BatchChoice.LARGEST),
        global_batch_size=64,
        learning_rate=rate,
    )
    assert planned_learning_rate(searching) == pytest.approx(2e-3)
    assert planned_learning_rate(replace(searching, global_batch_size=None)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"batch_size_per_device": 24, "global_batch_size": 256},
        {"batch_size_per_device": 64, "global_batch_size": 256},
        {"global_batch_size": 100},
        {"global_batch_size": 4},
        {"global_batch_size": 64, "gradient_accumulation_steps": 2},
    ],
)
def test_refused_settings_are_named_with_accepted_ones(
    snapshot: Snapshot, changes: dict[str, Any]
) -> None:
    snapshot(problems(replace(Settings(instance="ml.p4d.24xlarge"), **changes)))
