"""A trace whose steps no device computes: its job fails with the arithmetic, and one below the peak
runs.
"""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job import PlannedStep, SecondaryStatus, TrainingJob
from localcloud.sagemaker_service.jobs.job_work import read_work
from localcloud.sagemaker_service.replay.simulated_log import write_stretch
from localcloud.sagemaker_service.replay.timeline import plan_timeline
from localcloud.sagemaker_service.replay.trace import Trace, TraceInvalid, implied_rate, read_traces
from tests.unit.localcloud.test_trace import job_of, plain_job
from tests.unit.run_samples import make_cell
from traindyno.core.instances.instance_types import InstanceType, instance_types
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import FAILURE_PREFIX
from traindyno.core.step_log.reader import read_step_log

WITH_PEAK = [
    instance_type for instance_type in instance_types().values() if instance_type.device.half_flops
]
P4D: dict[str, Any] = {"instance": "ml.p4d.24xlarge", "batch_size_per_device": 2}


def end_of(trace: Trace, job: TrainingJob, faults: FaultInjector) -> PlannedStep:
    return plan_timeline(job, trace, read_work(job), faults)[-1]


def trace_at(share: float, instance: InstanceType, instances: int, dice: random.Random) -> Trace:
    """A trace at this share of the peak of so many instances, with a batch of 2 on each device."""
    devices = instance.devices_per_instance * instances
    peak = (instance.device.half_flops or 0) * devices
    flops = 10 ** dice.uniform(9, 13)
    own_samples = dice.choice([None, 1, 5])
    seconds = (own_samples or 2) * devices * flops / (share * peak)
    recorded = (seconds * 0.5, seconds * 1.5) if dice.random() < 0.5 else ()
    return Trace(
        name="drawn",
        step_seconds=None if recorded else seconds,
        recorded_step_seconds=recorded,
        samples_per_step=own_samples,
        flops_per_sample=flops,
        flops_source="a draw",
        steps=3,
    )


@pytest.mark.parametrize("seed", range(60))
def test_any_trace_above_the_peak_fails_its_job_and_any_below_runs(
    seed: int, faults: FaultInjector
) -> None:
    dice = random.Random(seed)
    instance = dice.choice(WITH_PEAK)
    instances = dice.choice([1, 2, 16])
    share = 10 ** dice.uniform(-2, 1)
    cell = make_cell(instance=instance.name, instance_count=instances, batch_size_per_device=2)
    job = job_of(cell)
    trace = trace_at(share, instance, instances, dice)
    rate = implied_rate(trace, job, read_work(job))
    assert rate.share_of_peak == pytest.approx(share)
    end = end_of(trace, job, faults)
    assert end.secondary_status is (
        SecondaryStatus.FAILED if share > 1 else SecondaryStatus.COMPLETED
    )
    if share > 1:
        assert (
            f"{FAILURE_PREFIX}: {Outcome.USER_CODE_ERROR}: no device computes this: {rate.text}"
            in str(end.failure_reason)
        )
        assert len(str(end.failure_reason)) <= 1024


def test_the_share_of_the_peak_worked_out_by_hand() -> None:
    job = job_of(make_cell(**P4D))
    trace = Trace(
        name="by-hand", step_seconds=0.5, flops_per_sample=78e12, flops_source="a formula"
    )
    # 8 devices x 2 samples x 78 TFLOP / 0.5 s = 2,496 TFLOPS = 8 x 312: all of the peak
    assert implied_rate(trace, job, read_work(job)).text == (
        "trace by-hand: 16 samples x 7.8e+13 FLOPs (a formula) in 0.5000 s are 2,496.0 TFLOPS, "
        "100.0 % of the peak of 8 devices x 312.0 TFLOPS (1 x ml.p4d.24xlarge)"
    )


def test_devices_without_a_process_add_no_peak(faults: FaultInjector) -> None:
    job = job_of(make_cell(**P4D, instance_count=2, strategy="single"))
    # 2 processes x 2 samples x 78 TFLOP / 0.4 s = 780 TFLOPS, of 2 x 312; it would be 15.6 % of 16
    # x 312
    trace = Trace(name="t", step_seconds=0.4, flops_per_sample=78e12, flops_source="f")
    rate = implied_rate(trace, job, read_work(job))
    assert rate.share_of_peak == pytest.approx(1.25)
    assert "of the peak of 2 devices x 312.0 TFLOPS (2 x ml.p4d.24xlarge)" in rate.text
    assert end_of(trace, job, faults).secondary_status is SecondaryStatus.FAILED


@pytest.mark.parametrize("seed", range(30))
def test_slow_steps_among_the_recorded_ones_hide_no_impossible_steady_step(
    seed: int, faults: FaultInjector
) -> None:
    dice = random.Random(seed)
    job = job_of(make_cell(**P4D))
    steady = dice.randint(4, 99)
    slow = [dice.uniform(1, 1000) for _ in range(dice.randint(1, 3))]
    # 16 samples x 40 TFLOP / 0.01 s, of 8 x 312 TFLOPS
    trace = Trace(
        name="t",
        recorded_step_seconds=(*slow, *[0.01] * steady),
        flops_per_sample=4e13,
        flops_source="f",
    )
    assert implied_rate(trace, job, read_work(job)).share_of_peak == pytest.approx(64e3 / 2496)
    assert end_of(trace, job, faults).secondary_status is SecondaryStatus.FAILED


@pytest.mark.parametrize(
    ("instance", "trace", "reason"),
    [
        (
            "ml.p4d.24xlarge",
            Trace(name="mine", step_seconds=1e-9),
            "trace mine states no flops_per_sample",
        ),
        (
            "ml.m7i.xlarge",
            Trace(name="mine", step_seconds=1e-9, flops_per_sample=1e15),
            "the peak of ml.m7i.xlarge",
        ),
        (
            "ml.p4d.24xlarge",
            Trace(name="mine", flops_per_sample=1e15),
            "trace mine has no step time",
        ),
    ],
)
def test_unknown_figures_are_said_and_refuse_nothing(
    instance: str, trace: Trace, reason: str, faults: FaultInjector
) -> None:
    job = plain_job(instance)
    trace = replace(trace, steps=3)
    rate = implied_rate(trace, job, read_work(job))
    assert (rate.share_of_peak, rate.text.startswith(f"unknown: {reason}")) == (None, True)
    assert end_of(trace, job, faults).secondary_status is SecondaryStatus.COMPLETED


def test_simulated_step_log_has_its_share_of_the_peak() -> None:
    job = job_of(make_cell(**P4D))
    trace = Trace(name="mine", step_seconds=1.0)
    work = read_work(job)
    stretch = write_stretch(job, trace, work, start_ms=0, until_ms=10**9, first_step=0)
    log = read_step_log(
        {f"job/{name}": text.splitlines(keepends=True) for name, text in stretch.files.items()}
    )
    facts = log.environments[0].facts
    assert facts["simulated_share_of_peak"] == implied_rate(trace, job, work).text


@pytest.mark.parametrize(
    "given", [{"flops_per_sample": 1e12}, {"flops_per_sample": 0, "flops_source": "a paper"}]
)
def test_flops_without_a_source_or_a_number_are_refused(
    given: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "mine.json").write_text(json.dumps(given), encoding="utf-8")
    with pytest.raises(
        TraceInvalid, match=r"mine.json: flops_per_sample is .* a number above 0, and flops_source"
    ):
        read_traces(tmp_path)
