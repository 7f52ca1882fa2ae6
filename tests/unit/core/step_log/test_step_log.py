import json

import pytest

from tests.sentences import Snapshot
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.step_log import line
from traindyno.core.step_log.reader import StepLogInvalid, read_step_log

STEP = line.step_line(step=1, begin=1.0, end=2.0, wait_seconds=0.0, samples=1)
HOST_LOAD = line.host_load_line(
    begin=1.0,
    end=2.0,
    cpu_seconds=1.0,
    run_queue_seconds=0.0,
    host_busy_seconds=1.0,
    steal_seconds=0.0,
    host_cpu_count=1,
)
WHOLE = {"step": STEP, "phase": line.phase_line("load", 1.0, 2.0), "host_load": HOST_LOAD}
NINES = "9" * 5000


def test_reads_the_writers_lines() -> None:
    lines = log_lines(
        step_seconds=[2.0, 1.0],
        tokens=40,
        before=[
            line.phase_line("load", START - 3, START, {"source": "train"}),
            line.model_line(START, 1000, 6000.0, "6 N"),
        ],
        after=[
            line.evaluation_line(START + 3, 2, {"loss": 3.5}),
            line.error_line(START + 4, "loss_diverged", "loss is nan"),
        ],
    )
    log = read_step_log({file_name(): lines})
    (session,) = log.sessions
    (process,) = session.processes
    assert session.job_name == "job-a1"
    assert [step.step for step in process.steps] == [0, 1]
    assert process.steps[1].end == START + 3
    assert process.steps[0].tokens == 40
    assert process.phases[0].seconds == 3
    assert log.model is not None
    assert log.model.flops_per_token == 6000.0
    assert log.sessions[0].evaluations[0].metrics == {"loss": 3.5}
    assert log.errors[0].outcome == "loss_diverged"
    assert log.environments[0].facts == {"torch": "2.13.0"}
    assert log.problems == ()


def test_the_last_line_says_why_a_run_ended_before_its_last_step() -> None:
    early, whole = (
        read_step_log({file_name(): log_lines(step_seconds=[1.0] * 3, end_reason=reason)}).sessions[
            0
        ]
        for reason in (line.TARGET_REACHED, None)
    )
    assert (early.end_reason, whole.end_reason) == ("target_reached", None)
    assert early.processes[0].is_ended


def test_a_cut_off_last_line_is_left_out_and_reported(snapshot: Snapshot) -> None:
    lines = log_lines(step_seconds=[1.0] * 3, is_ended=False)
    lines[-1] = lines[-1][:20]
    log = read_step_log({file_name(): lines})
    assert log.measured is not None
    assert list(log.measured.common_steps) == [0, 1]
    assert len(log.problems) == 2
    snapshot(log.problems[0])
    assert "log ends after 2 steps" in log.problems[1]


def test_a_last_line_of_nul_bytes_is_no_line() -> None:
    log = read_step_log({file_name(): [*log_lines(step_seconds=[1.0]), "\0\0\0\0"]})
    assert log.problems == ()


def test_a_broken_line_in_the_middle_is_refused_with_its_place() -> None:
    lines = log_lines(step_seconds=[1.0] * 3)
    lines[2] = "Traceback (most recent call last):\n"
    with pytest.raises(StepLogInvalid, match=r"jsonl:3: got 'Tr.*, .*with a kind"):
        read_step_log({file_name(): lines})


@pytest.mark.parametrize(
    "bad",
    [
        "hello\n",
        "[1, 2]\n",
        json.dumps({"kind": "stepp"}),
        json.dumps({"kind": "step", "step": 1}),
        json.dumps(line.step_line(step=1, begin=2.0, end=1.0, wait_seconds=0, samples=1)),
        json.dumps(line.step_line(step=1, begin=1.0, end=2.0, wait_seconds=0, samples=-1)),
        json.dumps(line.step_line(step=1, begin=1.0, end=float("inf"), wait_seconds=0, samples=1)),
        json.dumps({**STEP, "samples": "8"}),
        json.dumps({**STEP, "loss": [1.0]}),
        json.dumps({**STEP, "step": True}),
        json.dumps(line.phase_line("load", 2.0, 1.0)),
        json.dumps({**line.evaluation_line(1.0, 1, {}), "metrics": {"loss": "low"}}),
        json.dumps({**line.environment_line(1.0, 0, 1, "h", {}), "schema_version": 9}),
        json.dumps(line.environment_line(1.0, 2, 2, "h", {})),
        json.dumps(line.environment_line(1.0, 1, 2, "h", {})),
    ],
)
def test_garbage_is_refused_with_file_line_and_expectation(snapshot: Snapshot, bad: str) -> None:
    with pytest.raises(StepLogInvalid) as raised:
        read_step_log({file_name(): [bad]})
    snapshot(str(raised.value))


def test_a_file_of_another_name_is_refused() -> None:
    with pytest.raises(StepLogInvalid, match=r"stdout\.txt, expected a name like"):
        read_step_log({"stdout.txt": []})


def test_backward_steps_are_refused() -> None:
    lines = log_lines(step_seconds=[1.0]) + log_lines(step_seconds=[1.0])
    with pytest.raises(StepLogInvalid, match="step 0 follows step 0"):
        read_step_log({file_name(): lines})


def test_a_missing_rank_is_named(snapshot: Snapshot) -> None:
    files = {
        file_name(rank): log_lines(rank=rank, world_size=4, step_seconds=[1.0] * 2)
        for rank in (0, 1, 3)
    }
    log = read_step_log(files)
    assert log.sessions[0].missing_ranks == (2,)
    snapshot(log.problems)


def test_ranks_stopped_at_different_steps_share_the_common_ones() -> None:
    files = {
        file_name(0): log_lines(rank=0, world_size=2, step_seconds=[1.0] * 5),
        file_name(1): log_lines(rank=1, world_size=2, step_seconds=[1.0] * 3, is_ended=False),
    }
    measured = read_step_log(files).measured
    assert measured is not None
    assert list(measured.common_steps) == [0, 1, 2]


def test_a_restart_is_another_session() -> None:
    later = START + 60
    files = {}
    for rank in (1, 0):
        files[file_name(rank)] = log_lines(
            rank=rank, world_size=2, step_seconds=[1.0] * 10, is_ended=False
        )
        files[file_name(rank, start=later)] = log_lines(
            rank=rank, world_size=2, step_seconds=[1.0] * 20, first_step=7, start=later
        )
    log = read_step_log(files)
    assert len(log.sessions) == 2
    assert (log.sessions[0].end, log.sessions[1].begin) == (START + 10, later)
    assert log.measured is log.sessions[1]


def test_a_session_begins_with_its_first_process_and_ends_with_its_last() -> None:
    files = {
        file_name(rank, start=START + 3 * rank): log_lines(
            rank=rank, world_size=2, step_seconds=[1.0] * 5, start=START + 3 * rank
        )
        for rank in (0, 1)
    }
    (session,) = read_step_log(files).sessions
    assert (session.begin, session.end) == (START, START + 8)


def test_a_restart_is_another_session_though_a_rank_lost_its_first_log() -> None:
    later = START + 60
    lost = {file_name(0): log_lines(rank=0, world_size=2, step_seconds=[1.0] * 10, is_ended=False)}
    restarted = {
        # rank 1 starts a little earlier than rank 0
        file_name(rank, start=later - rank): log_lines(
            rank=rank, world_size=2, step_seconds=[1.0] * 20, first_step=7, start=later - rank
        )
        for rank in (0, 1)
    }
    log = read_step_log({**lost, **restarted})
    assert [[process.rank for process in session.processes] for session in log.sessions] == [
        [0],
        [0, 1],
    ]
    assert log.measured is log.sessions[1]
    assert len(log.sessions[1].common_steps) == 20


@pytest.mark.parametrize(
    ("launches", "ranks"),
    [(("1", "2"), [[1], [0, 1]]), ((None, "2"), [[0, 1], [1]]), ((None, None), [[0, 1], [1]])],
)
def test_a_quick_restart_with_another_launch_is_another_session(
    launches: tuple[str | None, str | None], ranks: list[list[int]]
) -> None:
    """The instance was lost before rank 0 had a log.

    Logs that don't name the launch have only the clock.
    """
    files = {
        file_name(rank, start=start): log_lines(
            rank=rank, world_size=2, step_seconds=[], start=start, launch=launch, is_ended=False
        )
        for rank, start, launch in (
            (1, START, launches[0]),
            (0, START + 3, launches[1]),
            (1, START + 3.1, launches[1]),
        )
    }
    sessions = read_step_log(files).sessions
    assert [[process.rank for process in session.processes] for session in sessions] == ranks


def test_a_late_rank_belongs_to_the_waiting_session() -> None:
    waiting = [line.phase_line("load", START, START + 50)]
    files = {
        file_name(0): log_lines(
            rank=0, world_size=2, step_seconds=[1.0] * 5, before=waiting, start=START
        ),
        file_name(1, start=START + 40): log_lines(
            rank=1, world_size=2, step_seconds=[1.0] * 5, start=START + 50
        ),
    }
    (session,) = read_step_log(files).sessions
    assert session.missing_ranks == ()


def test_another_attempt_of_the_run_is_another_session() -> None:
    files = {
        file_name(job="job-a1"): log_lines(step_seconds=[1.0] * 10, is_ended=False),
        file_name(job="job-a2", start=START + 5): log_lines(
            step_seconds=[1.0] * 10, start=START + 5
        ),
    }
    log = read_step_log(files)
    assert [session.job_name for session in log.sessions] == ["job-a1", "job-a2"]
    assert log.measured is log.sessions[1]


def test_a_log_without_steps_has_nothing_measured() -> None:
    log = read_step_log({file_name(): log_lines(step_seconds=[])})
    assert log.measured is None
    assert read_step_log({}).sessions == ()


@pytest.mark.parametrize(
    ("kind", "changes", "is_valid"),
    [
        ("step", {"begin": 0.0}, True),
        ("step", {"begin": -0.5}, False),
        ("step", {"begin": 2.0}, True),
        ("step", {"samples": 0}, True),
        ("step", {"wait_seconds": 0}, True),
        ("step", {"wait_seconds": -0.1}, False),
        ("step", {"wait_seconds": float("nan")}, False),
        ("step", {"end": float("nan")}, False),
        ("step", {"loss": "nan"}, True),
        ("step", {"loss": "low"}, False),
        ("step", {"tokens": None}, True),
        ("step", {"tokens": 1.5}, False),
        ("phase", {"begin": 0.0}, True),
        ("phase", {"end": 1.0}, True),
        ("phase", {"begin": -1.0}, False),
        ("phase", {"end": float("inf")}, False),
        ("host_load", {}, True),
        ("host_load", {"begin": 0.0}, True),
        ("host_load", {"end": 1.0}, False),
        ("host_load", {"begin": -1.0}, False),
        ("host_load", {"end": float("inf")}, False),
        ("host_load", {"host_cpu_count": 0}, False),
    ],
)
def test_lines_at_the_ends_of_their_ranges(
    kind: str, changes: dict[str, object], is_valid: bool
) -> None:
    lines = [*log_lines(step_seconds=[], is_ended=False), json.dumps({**WHOLE[kind], **changes})]
    if is_valid:
        (process,) = read_step_log({file_name(): lines}).sessions[0].processes
        assert [len(process.steps), len(process.phases), len(process.host_loads)] == [
            kind == whole_kind for whole_kind in WHOLE
        ]
    else:
        with pytest.raises(
            StepLogInvalid, match=f"{kind} .*has begin|end: got inf|loss: got text|tokens: got "
        ):
            read_step_log({file_name(): lines})


def test_non_finite_metrics_are_read() -> None:
    after = [line.evaluation_line(START + 1, 1, {"loss": float("inf"), "accuracy": 0.5})]
    log = read_step_log({file_name(): log_lines(step_seconds=[1.0], after=after)})
    assert log.sessions[0].evaluations[0].metrics == {"loss": float("inf"), "accuracy": 0.5}


@pytest.mark.parametrize(("later", "sessions"), [(10.0, 1), (10.5, 2)])
def test_processes_of_one_launch_start_within_ten_seconds(later: float, sessions: int) -> None:
    """Neither logged anything by then."""
    files = {
        file_name(rank, start=START + delay): log_lines(
            rank=rank, world_size=2, step_seconds=[], start=START + delay, is_ended=False
        )
        for rank, delay in ((0, 0.0), (1, later))
    }
    assert len(read_step_log(files).sessions) == sessions


def test_a_backward_clock_is_refused() -> None:
    steps = [
        line.step_line(step=number, begin=begin, end=9.0, wait_seconds=0, samples=1)
        for number, begin in ((1, 5.0), (2, 4.0))
    ]
    lines = [*log_lines(step_seconds=[], is_ended=False), *map(json.dumps, steps)]
    with pytest.raises(StepLogInvalid, match="step 2 begins before step 1;"):
        read_step_log({file_name(): lines})


def test_processes_naming_different_worlds_are_reported(snapshot: Snapshot) -> None:
    files = {
        file_name(rank): log_lines(rank=rank, world_size=size, step_seconds=[1.0])
        for rank, size in ((0, 2), (1, 3))
    }
    log = read_step_log(files)
    assert log.sessions[0].world_size == 3
    snapshot(log.problems[0])
    snapshot(log.problems[1])


def test_a_process_cut_off_before_its_environment_counts_by_its_name() -> None:
    files = {
        file_name(0): log_lines(rank=0, world_size=1, step_seconds=[1.0]),
        file_name(2): log_lines(rank=2, step_seconds=[1.0])[1:],
    }
    (session,) = read_step_log(files).sessions
    assert (session.world_size, session.missing_ranks) == (3, (1,))


def step_text(**changes: str) -> str:
    """A step's line; ``changes`` are values as they are written."""
    whole = {name: json.dumps(value) for name, value in STEP.items()} | changes
    return "{" + ", ".join(f'"{name}": {value}' for name, value in whole.items()) + "}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (step_text(loss=NINES), "an integer of thousands of digits"),
        (step_text(extra="[" * 100_000), "thousands of levels"),
        (step_text(loss="1" + "0" * 400), "loss: got a number beyond 1e"),
        (step_text(loss="-1e308"), "loss: got a number beyond 1e"),
        (step_text(step="1" + "0" * 400), "step: got a number beyond 1e"),
        (step_text(end="1" + "0" * 400), "nothing negative or above 1e"),
        (step_text(samples="1" + "0" * 400), "nothing negative or above 1e"),
        (step_text(tokens="-1"), "nothing negative or above 1e"),
        (step_text(peak_memory_bytes="-1"), "nothing negative or above 1e"),
        (step_text(kind='"' + "x" * 1_000_000 + '"'), "expected 1000000 at most"),
        (step_text(kind='"' + "x" * 9000 + '"'), "kind 'x{60}' is unknown"),
        (json.dumps(HOST_LOAD | {"cpu_seconds": 1e61}), "cpu_seconds: got a number beyond 1e"),
        (
            json.dumps(HOST_LOAD | {"cpu_seconds": float("nan")}),
            "cpu_seconds: got nan, expected a finite number",
        ),
        (
            json.dumps(line.phase_line("x" * 10_001, 1.0, 2.0)),
            "name: got a text of 10001 characters",
        ),
        (
            json.dumps(line.phase_line("load", 1.0, 2.0, {"bytes": 10**400})),
            "facts: got a number beyond 1e",
        ),
        (
            json.dumps(
                line.phase_line("load", 1.0, 2.0, {"a": [[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]})
            ),
            "20 levels",
        ),
        (
            json.dumps(line.evaluation_line(1.0, 1, {"loss": 1e61})),
            "metrics: got a number beyond 1e",
        ),
        (
            json.dumps(line.environment_line(1.0, 0, 10**12, "algo-1", {})),
            "world_size: got 1000000000000, expected",
        ),
        (
            json.dumps(line.environment_line(1.0, 0, 1, "a" * 256, {})),
            "host: got a longer text than 255",
        ),
    ],
)
def test_unusable_numbers_are_named_with_their_line(text: str, reason: str) -> None:
    with pytest.raises(StepLogInvalid, match=reason) as raised:
        read_step_log({file_name(): [*log_lines(step_seconds=[], is_ended=False), text]})
    assert str(raised.value).startswith(f"{file_name()}:2: ")


@pytest.mark.parametrize(
    "name", ["job-a1/rank-100000.1.jsonl", "job-a1/rank-00000.10000000000000000.jsonl"]
)
def test_a_rank_or_a_time_of_no_job_is_no_name_of_a_file(name: str) -> None:
    with pytest.raises(StepLogInvalid, match="expected a name like"):
        read_step_log({name: log_lines(step_seconds=[1.0])})


def test_the_longest_host_and_a_loss_without_end_are_read() -> None:
    lines = [
        json.dumps(line.environment_line(1.0, 0, 1, "a" * 255, {})),
        step_text(loss="Infinity"),
    ]
    measured = read_step_log({file_name(): lines}).measured
    assert measured is not None
    assert measured.processes[0].steps[0].loss == float("inf")


def test_half_of_a_surrogate_pair_becomes_a_question_mark() -> None:
    lines = log_lines(step_seconds=[], facts={"a\ud800": "b\udfff", "whole": "\U0001f600"})
    assert read_step_log({file_name(): lines}).environments[0].facts == {
        "a?": "b?",
        "whole": "\U0001f600",
    }


def test_of_many_missing_ranks_the_first_are_named(snapshot: Snapshot) -> None:
    log = read_step_log({file_name(): log_lines(world_size=100_000, step_seconds=[1.0])})
    snapshot(log.problems[0])
