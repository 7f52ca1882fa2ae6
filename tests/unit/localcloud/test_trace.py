"""The steps and samples of a simulated job are those of a real one with the same settings."""

import json
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from localcloud.sagemaker_service.jobs.job import Engine, Status, TrainingJob
from localcloud.sagemaker_service.jobs.job_work import DEFAULT_SAMPLES, read_work
from localcloud.sagemaker_service.replay.simulated_log import (
    step_seconds,
    total_steps,
    training_seconds,
    write_stretch,
)
from localcloud.sagemaker_service.replay.trace import (
    NOMINAL_STEP_OVERHEAD_SECONDS,
    Trace,
    choose_trace,
    nominal_trace,
)
from tests.unit.run_samples import known, make_attempt, make_cell, make_run, make_suite, result_from
from tests.unit.sagemaker.test_request import SETTINGS
from traindyno.core.costs.full_run import reschedule
from traindyno.core.run.processes import planned_batch_size
from traindyno.core.run.workload import FullRun
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import Strategy
from traindyno.core.suite.suite import Measurement
from traindyno.sagemaker.request import build_training_job_request

FOUR_DEVICES: dict[str, Any] = {"instance": "ml.g5.12xlarge", "batch_size_per_device": 2}
TRACE = Trace(name="trace", step_seconds=1.0)


def simulated(request: dict[str, Any]) -> TrainingJob:
    return TrainingJob(
        name="job",
        arn="arn",
        engine=Engine.REPLAY,
        request=request,
        created_ms=0,
        modified_ms=0,
        status=Status.IN_PROGRESS,
        transitions=(),
    )


def job_of(cell: Cell, examples: int = 100) -> TrainingJob:
    suite = make_suite(examples=examples, measurement=Measurement(max_steps=1000))
    return simulated(
        build_training_job_request(make_run(cell), suite, attempt=1, settings=SETTINGS)
    )


def plain_job(instance_type: str = "ml.g5.12xlarge", **hyperparameters: str) -> TrainingJob:
    """A job of another program than Traindyno."""
    resources = {"InstanceType": instance_type, "InstanceCount": 2}
    return simulated({"ResourceConfig": resources, "HyperParameters": hyperparameters})


def samples_by_rank(job: TrainingJob, trace: Trace = TRACE) -> list[int]:
    """The samples of the first step."""
    work = read_work(job)
    stretch = write_stretch(job, trace, work, start_ms=0, until_ms=10**9, first_step=0)
    log = read_step_log(
        {f"job/{name}": text.splitlines(keepends=True) for name, text in stretch.files.items()}
    )
    (session,) = log.sessions
    return [process.steps[0].samples for process in session.processes]


@pytest.mark.parametrize(
    ("settings", "samples", "steps"),
    [
        # 4 replicas x 2 samples; 100 samples are 12.5 steps
        ({"strategy": Strategy.DDP}, [2, 2, 2, 2], 13),
        # 4 replicas x 3 passes x 2 samples
        ({"strategy": Strategy.DDP, "gradient_accumulation_steps": 3}, [6, 6, 6, 6], 5),
        # 2 replicas x 2 samples, whose processes count one each
        ({"strategy": Strategy.TENSOR, "tensor_degree": 2}, [1, 1, 1, 1], 25),
        # one replica of all four processes
        ({"strategy": Strategy.TENSOR}, [0, 1, 0, 1], 50),
        # 2 replicas x 3 samples
        (
            {"strategy": Strategy.PIPELINE, "pipeline_degree": 2, "batch_size_per_device": 3},
            [1, 2, 1, 2],
            17,
        ),
        # one process, although the instance has four devices
        ({"strategy": Strategy.SINGLE}, [2], 50),
    ],
)
def test_a_simulated_job_has_the_batch_of_a_real_one(
    settings: dict[str, Any], samples: list[int], steps: int
) -> None:
    cell = make_cell(**{**FOUR_DEVICES, **settings})
    job = job_of(cell)
    assert samples_by_rank(job) == samples
    assert sum(samples) == planned_batch_size(cell.settings)
    assert read_work(job).steps == steps


@pytest.mark.parametrize(
    ("seconds", "examples", "steps"), [(2.0, 10**6, 202), (0.1, 10**6, 50), (2.0, 1600, 200)]
)
def test_a_simulated_run_has_as_many_steps_as_last_the_least_time(
    seconds: float, examples: int, steps: int
) -> None:
    given = {
        "measurement": json.dumps({"max_steps": 50, "least_seconds": seconds}),
        "settings": json.dumps({"batch_size_per_device": 1}),
        "workload": json.dumps({"examples": examples}),
    }
    job = plain_job(**given)
    trace = replace(nominal_trace(job, read_work(job)), step_seconds=0.01)
    assert total_steps(trace, read_work(job)) == steps


def test_the_nominal_time_of_a_step_is_for_its_samples_on_one_device() -> None:
    def seconds(**settings: Any) -> float:
        job = job_of(make_cell(**{**FOUR_DEVICES, **settings}))
        return (
            nominal_trace(job, read_work(job)).step_seconds or 0.0
        ) - NOMINAL_STEP_OVERHEAD_SECONDS

    two_samples = seconds()
    assert two_samples > 0
    assert seconds(gradient_accumulation_steps=3) == pytest.approx(3 * two_samples)
    assert seconds(strategy=Strategy.TENSOR, tensor_degree=2) == pytest.approx(two_samples / 2)


def test_a_job_of_another_program_has_a_nominal_batch_on_each_device() -> None:
    for given in (
        {},
        {"settings": '"fast"'},
        {"settings": '{"depth": 3}'},
        {"settings": '{"strategy": "fast"}'},
    ):
        job = plain_job(**given)
        assert samples_by_rank(job) == [DEFAULT_SAMPLES] * 8
        assert read_work(job).steps == 100


def test_settings_without_a_batch_have_the_nominal_one() -> None:
    assert samples_by_rank(plain_job(settings='{"strategy": "single"}')) == [DEFAULT_SAMPLES] * 2


def test_a_type_with_an_unknown_number_of_devices_has_one_process_on_each_instance() -> None:
    assert samples_by_rank(plain_job("ml.unheard.of")) == [DEFAULT_SAMPLES] * 2


def test_the_trace_says_how_many_samples_each_process_has() -> None:
    job = job_of(make_cell(**FOUR_DEVICES, gradient_accumulation_steps=3))
    assert samples_by_rank(job, replace(TRACE, samples_per_step=7)) == [7] * 4


def test_a_degree_of_more_processes_than_the_job_has_leaves_one_sample() -> None:
    """A suite with it is refused; the service takes any request."""
    job = plain_job(
        settings='{"strategy": "tensor", "tensor_degree": 64}', workload='{"examples": 3}'
    )
    assert sum(samples_by_rank(job)) == 1
    assert read_work(job).steps == 3


@pytest.mark.parametrize(
    ("strategy", "played"), [("fsdp", "closer"), ("ddp", "plain"), ("single", "recorded")]
)
def test_the_trace_naming_most_of_a_jobs_values_is_played(strategy: str, played: str) -> None:
    matches: dict[str, dict[str, Any]] = {
        "plain": {},
        "closer": {"strategy": "fsdp", "instance_type": "ml.g5.12xlarge"},
        "other": {"strategy": "ddp", "instance_type": "ml.g5.12xlarge", "precision": "bf16"},
        "recorded": {"strategy": "single"},
    }
    traces = [replace(TRACE, name=name, match=match) for name, match in matches.items()]
    assert (
        choose_trace(plain_job(settings=json.dumps({"strategy": strategy})), traces).name == played
    )


def test_recorded_steps_are_repeated_in_their_order() -> None:
    assert [*islice(step_seconds(replace(TRACE, recorded_step_seconds=(1.0, 2.0)), "job"), 3)] == [
        1.0,
        2.0,
        1.0,
    ]


@pytest.mark.parametrize("value", ["all", [1, 2], None, True, {"a": 1}, 2.5])
@pytest.mark.parametrize(
    ("name", "field"),
    [("measurement", "max_steps"), ("workload", "examples"), ("workload", "sequence_length")],
)
def test_a_scripts_own_mapping_of_a_known_name_has_nominal_values(
    name: str, field: str, value: Any
) -> None:
    """A script may have hyperparameters of these names that mean something else."""
    plain = read_work(plain_job())
    with_own = read_work(plain_job(**{name: json.dumps({field: value})}))
    assert replace(with_own, values={}) == replace(plain, values={})


@pytest.mark.parametrize(("checkpoint", "evaluation"), [(0.01, 0.01), (6.0, 4.0)])
def test_a_simulated_job_shows_the_work_of_the_full_run(
    checkpoint: float, evaluation: float
) -> None:
    """One of each in its midst, whose cost is projected and whose time passes."""
    suite = make_suite(examples=10**6, measurement=Measurement(max_steps=40))
    schedule = FullRun(checkpoint_every_minutes=10, evaluate_every_steps=100)
    suite = replace(suite, workload=replace(suite.workload, full_run=schedule))
    run = make_run(make_cell())
    job = simulated(build_training_job_request(run, suite, attempt=1, settings=SETTINGS))
    trace = replace(TRACE, checkpoint_seconds=checkpoint, evaluation_seconds=evaluation)
    work = read_work(job)
    silent = replace(TRACE, checkpoint_seconds=0.0, evaluation_seconds=0.0)
    seconds, plain = (
        training_seconds(played, job, work, first_step=0, last_step=40)
        for played in (trace, silent)
    )
    assert seconds == pytest.approx(plain + checkpoint + evaluation)
    stretch = write_stretch(
        job, trace, work, start_ms=0, until_ms=round(seconds * 1000), first_step=0
    )
    assert stretch.next_step == 40
    log = read_step_log(
        {f"job-a1/{name}": text.splitlines(keepends=True) for name, text in stretch.files.items()}
    )
    result = result_from(log, run=run, suite=suite, attempts=[make_attempt(job_name="job-a1")])
    scheduled = known(reschedule(result))
    throughput = result.measured.throughput if result.measured else None
    assert throughput is not None
    step_seconds = throughput.step_times.p50_seconds
    measured = scheduled.slower / throughput.steps_per_second
    assert measured == pytest.approx(
        (step_seconds + evaluation / 100) * (1 + checkpoint / 600), rel=0.01
    )
