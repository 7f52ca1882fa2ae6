"""A log without some of its steps gives no rate; its problem names what is missing."""

import json
import random
from collections.abc import Collection

import pytest

from tests.unit.run_samples import result_from
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.step_log.line import end_line
from traindyno.core.step_log.reader import StepLog, read_step_log

STEPS = 400
RATE = 8.0  # samples of a step of one second


def without(
    dropped: Collection[int], *, rank: int = 0, world_size: int = 1, first_step: int = 1
) -> list[str]:
    """A process's log of 400 steps of one second, without the lines of these steps."""
    lines = log_lines(
        rank=rank, world_size=world_size, step_seconds=[1.0] * STEPS, first_step=first_step
    )
    return [line for line in lines if json.loads(line).get("step") not in dropped]


def log_without(dropped: Collection[int], **changes: int) -> StepLog:
    return read_step_log({file_name(): without(dropped, **changes)})


def result_of(log: StepLog) -> RunResult:
    return result_from(log)


def every(number: int) -> set[int]:
    """All steps but those with a multiple of the number."""
    return {step for step in range(1, STEPS + 1) if step % number}


def at_random(share: float, seed: int) -> set[int]:
    return {step for step in range(2, STEPS) if random.Random(f"{seed} {step}").random() < share}


@pytest.mark.parametrize(
    "dropped",
    [
        *(every(number) for number in (2, 3, 5, 10, 50)),
        *(at_random(share, seed) for share in (0.005, 0.02, 0.1, 0.5) for seed in (1, 2, 3)),
        *(set(range(200, 200 + length)) for length in (1, 4, 5, 50, 150)),
    ],
    ids=lambda dropped: f"{len(dropped)} from {min(dropped, default=0)}",
)
def test_a_log_with_gaps_gives_no_rate_and_says_why(dropped: set[int]) -> None:
    log = log_without(dropped)
    result = result_of(log)
    kept = sorted(set(range(1, STEPS + 1)) - dropped)
    numbered = kept[-1] - kept[0] + 1
    missing = numbered - len(kept)
    (problem,) = log.problems
    assert f"{missing:,} of {numbered:,} steps were not logged" in problem
    assert (result.samples_per_second, result.message) == (None, problem)
    assert result.measured is not None


def test_the_first_gaps_are_named() -> None:
    (problem,) = log_without({3, 7, 8, 100, 200}).problems
    assert problem == (
        "job job-a1: 5 of 400 steps were not logged by every process (3, 7 to 8, 100, …): their "
        "work is unknown, so no rate is measured; expected a line for each step"
    )


def test_steps_logged_by_one_of_two_processes_are_missing() -> None:
    names = [file_name(rank) for rank in (0, 1)]
    files = [without(set(), rank=0, world_size=2), without(every(10), rank=1, world_size=2)]
    log = read_step_log(dict(zip(names, files, strict=True)))
    (problem,) = log.problems
    assert problem.startswith(
        "job job-a1: 351 of 391 steps were not logged by every process (11 to 19, 21 to 29,"
    )
    assert result_of(log).samples_per_second is None


@pytest.mark.parametrize("first_step", [0, 1, 1000])
def test_a_resumed_log_begins_with_any_number(first_step: int) -> None:
    log = log_without(set(), first_step=first_step)
    assert log.problems == ()
    assert result_of(log).samples_per_second == pytest.approx(RATE)


def sessions(*steps: range, ended_after: int | None = None) -> StepLog:
    """A job's sessions with these steps, 1,000 s apart; the last one ends after a step."""
    files = {}
    for number, seconds in enumerate(steps):
        start = START + 1000 * number
        lines = log_lines(
            step_seconds=[1.0] * len(seconds), first_step=seconds.start, start=start, is_ended=False
        )
        files[file_name(start=start)] = lines
    if ended_after is not None:
        lines.append(json.dumps(end_line(start + 500, ended_after)))
    return read_step_log(files)


@pytest.mark.parametrize(
    ("log", "lost"),
    [
        (sessions(range(1, 141), range(151, 160), ended_after=159), ["141 to 150"]),
        (
            sessions(range(1, 141), range(151, 151), ended_after=150),
            ["141 to 150"],
        ),  # it had no step left to do
        (
            sessions(range(1, 41), range(31, 36), range(38, 50), range(60, 70)),
            ["36 to 37", "50 to 59"],
        ),
        (sessions(range(1, 141), range(1, 1), range(151, 160)), ["141 to 150"]),
        (sessions(range(1, 151), range(141, 200), ended_after=199), []),
        (sessions(range(1, 151), range(151, 151), ended_after=150), []),
        (sessions(range(1, 151), range(1, 20), range(20, 30)), []),
        (sessions(range(5, 5), ended_after=4), []),
    ],
)
def test_steps_lost_between_two_sessions_are_named(log: StepLog, lost: list[str]) -> None:
    problems = [text for text in log.problems if "lost with the instance" in text]
    assert len(problems) == len(lost)
    for problem, steps in zip(problems, lost, strict=True):
        assert f"no log has the steps {steps}, after which it continued" in problem
