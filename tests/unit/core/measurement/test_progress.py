"""Each step of a run is counted once, however many sessions did it."""

import pytest

from tests.unit.run_samples import make_attempt, make_suite, result_from
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.costs.projection import project_run
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.measurement.run_phases import divide_steps, wall_seconds
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import IN_BACKGROUND, phase_line
from traindyno.core.step_log.reader import read_step_log

LATER = START + 100
LATEST = START + 300


def three_sessions() -> dict[str, list[str]]:
    """Steps 1 to 40, then 31 to 35, then 36 to 100: steps 31 to 35 are in two sessions, 36 to 40
    too.
    """
    return {
        file_name(): log_lines(step_seconds=[1.0] * 40, first_step=1, is_ended=False),
        file_name(start=LATER): log_lines(
            step_seconds=[1.0] * 5, first_step=31, start=LATER, is_ended=False
        ),
        file_name(start=LATEST): log_lines(step_seconds=[1.0] * 65, first_step=36, start=LATEST),
    }


def result_of(files: dict[str, list[str]], **changes: object) -> RunResult:
    return result_from(
        read_step_log(files),
        suite=make_suite(examples=8000),
        attempts=[make_attempt(**{"job_name": "job-a1", **changes})],
    )


def test_each_step_is_kept_once() -> None:
    divided = divide_steps(read_step_log(three_sessions()).sessions)
    assert [list(session.kept.numbers) for session in divided] == [
        list(range(1, 31)),
        list(range(31, 36)),
        list(range(36, 101)),
    ]
    assert [list(session.repeated.numbers) for session in divided] == [list(range(31, 41)), [], []]
    assert [wall_seconds(session.kept) for session in divided] == pytest.approx([30, 5, 65])


def test_a_session_beginning_anew_keeps_no_earlier_one() -> None:
    files = {
        file_name(): log_lines(step_seconds=[1.0] * 40, first_step=1, is_ended=False),
        file_name(start=LATER): log_lines(step_seconds=[1.0] * 50, first_step=1, start=LATER),
    }
    first, second = divide_steps(read_step_log(files).sessions)
    assert (len(first.kept), len(first.repeated), len(second.kept)) == (0, 40, 50)


def test_a_result_counts_steps_losses_and_time_over_all_sessions() -> None:
    measured = result_of(three_sessions()).measured
    assert measured is not None
    assert measured.job.interruptions == 2
    assert [point.step for point in measured.loss.points] == list(range(1, 101))
    assert measured.loss.points[-1].samples == 800
    # 300 s lie between the first session's begin and the last one's; 30 s and 5 s of them were kept
    # work
    assert measured.job.kept_seconds == pytest.approx(35)
    assert measured.job.lost_seconds == pytest.approx(265)


def test_the_phases_of_a_job_explain_its_interrupted_sessions() -> None:
    result = result_of(three_sessions(), phase_seconds={"training": 115.0, "interrupted": 250.0})
    assert result.phases_seconds["earlier_steps"] == pytest.approx(35)
    assert result.phases_seconds["repeated_steps"] == pytest.approx(10)
    stepping = [result.phases_seconds.get(name, 0.0) for name in ("first_step", "warmup", "steady")]
    assert sum(stepping) == pytest.approx(65)


def test_time_without_spot_instances_costs_nothing() -> None:
    phases = {"training": 115.0, "interrupted": 250.0, "uploading": 5.0}
    receipt = write_receipt(
        [result_of(three_sessions(), phase_seconds=phases, billable_seconds=120.0)]
    )
    (line,) = receipt.lines
    costs = {phase.name: phase.usd for phase in line.phases}
    assert costs["interrupted"] == 0
    assert costs["earlier_steps"]
    assert sum(cost for cost in costs.values() if cost is not None) == line.usd == receipt.total_usd


def checkpointed(write_seconds: float = 20.0) -> dict[str, list[str]]:
    """Two processes; a checkpoint of 2 s after every 50 of 200 steps of 1 s, and its write while
    steps go on.
    """
    files = {}
    for rank in range(2):
        after = []
        time = START
        step_seconds = []
        for step in range(200):
            step_seconds.append(3.0 if step and step % 50 == 0 else 1.0)
            if step and step % 50 == 0:
                after.append(phase_line("checkpoint", time, time + 2, {"step": step, "bytes": 700}))
                facts = {"step": step, "bytes": 400 + rank, IN_BACKGROUND: True}
                after.append(
                    phase_line("checkpoint_write", time + 2, time + 2 + write_seconds, facts)
                )
            time += step_seconds[-1]
        files[file_name(rank)] = log_lines(
            rank=rank, world_size=2, step_seconds=step_seconds, after=after
        )
    return files


def test_checkpoints_cost_their_wait_in_the_rate() -> None:
    result = result_of(checkpointed(), phase_seconds={"training": 206.0}, billable_seconds=206.0)
    measured = result.measured
    assert measured is not None
    assert measured.checkpoint_seconds == pytest.approx(2)
    (event,) = measured.recurring
    assert (event.name, event.count) == ("checkpoint", 3)
    assert event.seconds == pytest.approx(2)
    # 1 s a step and 2 s every 50 steps: 16 samples in 1.04 s
    assert measured.throughput is not None
    assert measured.throughput.samples_per_second == pytest.approx(16 / 1.04, rel=1e-3)
    projection = project_run(result)
    assert projection is not None
    assert projection.seconds == pytest.approx(8000 / 16 * 1.04, rel=0.02)


def test_a_write_in_the_background_takes_no_time_from_the_steps() -> None:
    quick, slow = (result_of(checkpointed(seconds)).measured for seconds in (1.0, 40.0))
    assert quick is not None
    assert slow is not None
    assert quick.throughput == slow.throughput


def test_losses_of_an_earlier_job_with_kept_steps_are_timed_from_its_begin() -> None:
    files = {
        file_name(job="job-a1"): log_lines(step_seconds=[1.0] * 30, first_step=1, is_ended=False),
        file_name(job="job-a2", start=LATER): log_lines(
            step_seconds=[1.0] * 70, first_step=31, start=LATER
        ),
    }
    measured = result_of(files, job_name="job-a2").measured
    assert measured is not None
    points = {point.step: point.seconds for point in measured.loss.points}
    assert points[1] == pytest.approx(1)
    assert points[31] == pytest.approx(101)
    # the job that was measured began 100 s later
    assert measured.job.began_at == pytest.approx(LATER)
    assert measured.job.interruptions == 0
    assert sorted(points) == list(range(1, 101))
