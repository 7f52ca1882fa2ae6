from dataclasses import replace
from decimal import Decimal

import pytest

from tests.unit.core.jobs.written_jobs import written_job
from tests.unit.run_samples import PRICE, known, make_attempt, make_suite, remeasured, result_from
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.costs.projection import (
    JobTime,
    Projection,
    paid_usd,
    project,
    project_run,
    read_job_time,
)
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.journal import read_job_journal
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.jobs.run_attempts import attempts_of_run
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log import line
from traindyno.core.step_log.reader import read_step_log

# A first step of 10 s and 60 steps of 1 s with 8 samples each: 80,000 samples are left after the
# first step, 10,000 s.
STEPS = [10.0] + [1.0] * 60
EXAMPLES = 80_008


def run_of(*attempts: Attempt, files: dict[str, list[str]] | None = None) -> RunResult:
    return result_from(
        read_step_log(files or {file_name(job="job-a1"): log_lines(step_seconds=STEPS)}),
        suite=make_suite(examples=EXAMPLES),
        attempts=attempts,
    )


def job(**changes: object) -> Attempt:
    """200 s: 60 to start, 20 to download, 100 of training (70 of them steps), 20 to upload; 140
    billed.
    """
    phases = {"starting": 60.0, "downloading": 20.0, "training": 100.0, "uploading": 20.0}
    given = {
        "job_name": "job-a1",
        "phase_seconds": phases,
        "billable_seconds": 140.0,
        "training_seconds": 140.0,
    }
    return make_attempt(**{**given, **changes})


def projected(result: RunResult) -> Projection:
    projection = known(project_run(result))
    return projection


def test_on_demand_by_hand() -> None:
    projection = projected(run_of(job()))
    # wall clock: 200 - 60 steady + 10,000; training: 140 - 60 + 10,000, all of it billed
    assert projection.overhead_seconds == pytest.approx(140)
    assert projection.seconds == pytest.approx(10_140)
    assert projection.before_training_seconds == pytest.approx(80)
    assert projection.billable_share == 1.0
    assert projection.billable_seconds == pytest.approx(10_080)
    assert projection.usd == Decimal("100.8")
    assert projection.instance_hours == pytest.approx(2.8)


def test_a_spot_saving_is_relative_to_the_whole_cost() -> None:
    projection = projected(run_of(job(billable_seconds=42.0)))
    # 70 % saved: 42 of 140 s; 10,080 x 0.3 = 3,024 s. The time does not change
    assert projection.billable_share == pytest.approx(0.3)
    assert projection.billable_seconds == pytest.approx(3_024)
    assert float(projection.usd or 0) == pytest.approx(30.24)
    assert projection.seconds == pytest.approx(10_140)
    assert projection.instance_hours == pytest.approx(2.8)


@pytest.mark.parametrize(("purchase", "share"), [("on-demand", 1.0), ("spot", None)])
def test_a_job_of_less_than_a_billed_second_costs_its_time(
    purchase: str, share: float | None
) -> None:
    short = job(phase_seconds={"training": 0.7}, billable_seconds=0.0, training_seconds=0.0)
    result = replace(run_of(short), price=replace(PRICE, purchase=purchase))
    projection = projected(result)
    # 10,000 s of work on the one instance at $36 an hour; whether spot would have saved any of it
    # isn't known
    assert projection.billable_share == share
    assert projection.usd == (None if share is None else Decimal("100"))


def restarted() -> RunResult:
    """Interrupted after 30 steps: 50 s of waiting and 60 s of starting unbilled, then a second life
    with all steps.
    """
    first = log_lines(step_seconds=[10.0] + [1.0] * 30, is_ended=False)
    later = START + 40 + 120
    second = log_lines(step_seconds=STEPS, first_step=20, start=later)
    files = {file_name(job="job-a1"): first, file_name(job="job-a1", start=later): second}
    phases = {
        "starting": 60.0 + 60.0,
        "downloading": 20.0,
        "training": 40.0 + 10.0 + 100.0,
        "interrupted": 50.0,
        "uploading": 20.0,
    }
    return run_of(
        job(phase_seconds=phases, billable_seconds=57.0, training_seconds=190.0), files=files
    )


def test_an_interruption_is_no_overhead_of_a_run() -> None:
    result = restarted()
    assert result.measured is not None
    # first life 40 s, 120 s until the second one, which continues after step 19: 10 s + 19 x 1 s of
    # the first are kept
    assert result.measured.job.interruptions == 1
    assert result.measured.job.lost_seconds == pytest.approx(131)
    assert result.measured.job.kept_seconds == pytest.approx(29)
    projection = projected(result)
    # as if there had been the second life only: 360 - 160 = 200 s of wall clock, 190 - (160 - 110)
    # = 140 s of training
    assert projection.seconds == pytest.approx(10_140)
    assert projection.training_overhead_seconds == pytest.approx(80)
    assert projection.billable_share == pytest.approx(57 / 190)
    assert projection.billable_seconds == pytest.approx(10_080 * 0.3)


def test_an_interrupted_run_of_a_shared_job_is_projected_as_one_alone() -> None:
    alone = restarted()
    (lone,) = alone.attempts
    run_id = alone.run.run_id
    written = written_job("job-a1")
    written.carry("before", 100)
    written.begin(run_id)
    written.clock += 40
    written.start()
    written.clock += 10
    written.carry(run_id, 100)
    written.carry("after", 50)
    written.write("parent_ended")
    # the same job with 150 s of two other runs; 30 % of it are billed
    shared = replace(
        lone,
        started_at=START,
        phase_seconds={**lone.phase_seconds, "training": 300.0},
        training_seconds=340.0,
        billable_seconds=102.0,
    )
    told = [(shared, read_job_journal(written.files, job_name="job-a1", host_count=1))]
    planned = ("before", run_id, "after")
    before, hit, after = (
        attempts_of_run(
            planned_id, told, planned=planned, outcome_of=lambda _: (Outcome.COMPLETED, None)
        )
        for planned_id in planned
    )
    projection = project_run(replace(alone, attempts=hit))
    expected = projected(alone)
    assert projection is not None
    assert (projection.seconds, projection.training_seconds) == pytest.approx(
        (expected.seconds, expected.training_seconds)
    )
    assert projection.billable_share == pytest.approx(expected.billable_share)
    for (other,) in (before, after):
        # one start, and no time without instances
        assert other.phase_seconds["starting"] == 60
        assert "interrupted" not in other.phase_seconds
    assert sum(Decimal(str(attempt.billable_seconds)) for (attempt,) in (before, hit, after)) == 102


def test_a_lost_attempt_is_no_overhead_of_a_run() -> None:
    lost = make_attempt(
        number=1, job_name="job-a0", billable_seconds=900.0, outcome=None, error="ServiceFault"
    )
    assert projected(run_of(lost, job(number=2))) == projected(run_of(job()))


def test_the_slowest_rank_says_how_long_the_steady_steps_took() -> None:
    files = {
        # rank 0 does its first step in 1 s and waits 9 s in the second one, in which rank 1 still
        # compiles
        file_name(0, job="job-a1"): log_lines(rank=0, world_size=2, step_seconds=STEPS),
        file_name(1, job="job-a1"): log_lines(
            rank=1, world_size=2, step_seconds=[20.0] + [1.0] * 60, start=START - 10
        ),
    }
    projection = projected(run_of(job(), files=files))
    assert projection.overhead_seconds == pytest.approx(140)


def test_an_unknown_bill_leaves_the_time_known() -> None:
    projection = projected(run_of(job(billable_seconds=None)))
    assert (projection.usd, projection.billable_seconds) == (None, None)
    assert projection.seconds == pytest.approx(10_140)


def test_a_job_of_unknown_time_is_not_projected() -> None:
    assert (
        project_run(run_of(job(phase_seconds={}, billable_seconds=None, training_seconds=None)))
        is None
    )


def test_checkpoints_are_projected_at_their_rate() -> None:
    first = log_lines(step_seconds=[1.0] * 40, is_ended=False)
    saved = [line.phase_line("save", START + 40, START + 50)]
    second = log_lines(step_seconds=[1.0] * 30, first_step=40, start=START + 50, before=saved)[1:]
    result = run_of(job(), files={file_name(job="job-a1"): first + second})
    # 8 samples in 1 s + 10 s / 40 steps; one step is done before the window, 80,000 samples are
    # left
    assert result.samples_per_second == pytest.approx(8 / 1.25)
    projection = projected(result)
    assert projection.seconds - projection.overhead_seconds == pytest.approx(10_000 * 1.25)
    assert known(known(result.measured).throughput).recurring_share == pytest.approx(0.2)
    # the window held 69 steps and one save
    assert projection.overhead_seconds == pytest.approx(200 - 79)


def of_job(**changes: object) -> Projection:
    """1,000 samples at 10 per second, 200 of them before the 60 s of steady steps; a job of 200 s
    on two instances.
    """
    given = {
        "examples": 1000,
        "samples_per_second": 10.0,
        "samples_before_steady": 200,
        "steady_seconds": 60.0,
        "job_time": JobTime(wall=200.0, before_training=80.0, training=120.0, billable=60.0),
        "instance_count": 2,
        "usd_per_instance_hour": Decimal(36),
        **changes,
    }
    return project(**given)  # type: ignore[arg-type]


def test_a_projection_by_hand() -> None:
    # 80 s are left of the work; 200 - 60 and 120 - 60 are overhead; half of the training time is
    # billed
    assert of_job() == Projection(
        before_training_seconds=80.0,
        overhead_seconds=140.0,
        training_overhead_seconds=60.0,
        seconds=220.0,
        billable_share=0.5,
        billable_seconds=70.0,
        instance_hours=140 * 2 / 3600,
        usd=Decimal("1.40"),
    )


def test_a_projection_is_never_less_than_nothing() -> None:
    # the steady steps took longer than the service says that the job did; all samples were seen
    # before them
    projection = of_job(steady_seconds=300.0, samples_before_steady=1500)
    assert (
        projection.overhead_seconds,
        projection.training_overhead_seconds,
        projection.seconds,
    ) == (0, 0, 0)


@pytest.mark.parametrize(
    ("billable", "training", "is_spot", "share"),
    [
        (None, 100.0, False, None),
        (0.9, 100.0, False, 1.0),
        (0.9, 100.0, True, None),
        (1.0, 100.0, True, 0.01),
        (30.0, 100.0, True, 0.3),
        (30.0, 0.0, False, 1.0),
    ],
)
def test_the_billed_share_of_a_job(
    billable: float | None, training: float, is_spot: bool, share: float | None
) -> None:
    time = JobTime(
        wall=200.0, before_training=0.0, training=training, billable=billable, is_spot=is_spot
    )
    assert time.billable_share == share


def test_the_time_of_a_job_is_the_services_own_if_known() -> None:
    phases = {
        "waiting": 30.0,
        "starting": 60.0,
        "downloading": 20.0,
        "training": 100.0,
        "interrupted": 50.0,
    }
    attempt = job(phase_seconds=phases, training_seconds=125.0, billable_seconds=70.0)
    # 120 s with instances: the 50 s without them may be in the service's training time or not
    expected = JobTime(wall=260.0, before_training=110.0, training=120.0, billable=70.0)
    assert read_job_time(attempt) == expected
    assert read_job_time(replace(attempt, training_seconds=119.0)) == replace(
        expected, training=119.0
    )
    uninterrupted = replace(attempt, phase_seconds={**phases, "interrupted": 0.0})
    assert read_job_time(uninterrupted) == replace(expected, wall=210.0, training=125.0)
    # otherwise it is the phases that are billed, or else what was billed
    assert read_job_time(replace(attempt, training_seconds=None)) == expected
    assert read_job_time(
        job(phase_seconds={}, training_seconds=None, billable_seconds=70.0)
    ) == JobTime(wall=70.0, before_training=0.0, training=70.0, billable=70.0)
    waited = read_job_time(
        job(phase_seconds={"waiting": 9.0}, training_seconds=None, billable_seconds=None)
    )
    assert waited == JobTime(wall=9.0, before_training=9.0, training=0.0, billable=None)


def test_the_paid_amount_is_for_all_instances() -> None:
    result = run_of(job(billable_seconds=200.0), job(number=2, billable_seconds=100.0))
    settings = replace(result.run.cell.settings, instance_count=3)
    three = replace(
        result, run=replace(result.run, cell=replace(result.run.cell, settings=settings))
    )
    # 200 + 100 s at a cent a second, on one instance and on three
    assert paid_usd(result) == Decimal(3)
    assert paid_usd(three) == Decimal(9)
    assert paid_usd(replace(result, billable_seconds=None)) is None
    assert paid_usd(replace(result, price=replace(PRICE, usd_per_instance_hour=None))) is None


def test_lost_time_beyond_the_services_own_interruptions_was_trained_in() -> None:
    result = run_of(
        job(phase_seconds={"training": 160.0, "interrupted": 50.0}, training_seconds=160.0)
    )
    lossy = remeasured(result, lost_seconds=60.0, kept_seconds=20.0)
    # 80 s were other sessions': 210 - 80 of wall clock, of which 50 s were not training: 160 - 30
    projection = projected(lossy)
    assert projection.overhead_seconds == pytest.approx(130 - 60)
    assert projection.training_overhead_seconds == pytest.approx(130 - 60)
    # 140 of 160 s were billed
    assert projection.billable_share == pytest.approx(140 / 160)
    short = remeasured(result, lost_seconds=20.0, kept_seconds=0.0)
    assert projected(short).training_overhead_seconds == pytest.approx(160 - 60)


def test_probes_are_no_time_of_the_whole_work() -> None:
    result = run_of(job())
    plain = projected(result)
    with_probes = job(
        phase_seconds={"starting": 60.0, "downloading": 20.0, "training": 112.0, "uploading": 20.0},
        billable_seconds=152.0,
        training_seconds=152.0,
    )
    end = START + sum(STEPS)
    lines = log_lines(step_seconds=STEPS, after=[line.phase_line(line.PROBE, end, end + 12)])
    projection = projected(run_of(with_probes, files={file_name(job="job-a1"): lines}))
    assert projection == plain
