"""Where the time of a run went, second by second."""

import pytest

from tests.unit.run_samples import make_attempt
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.jobs.attempt import RunShare
from traindyno.core.measurement.run_phases import divide_steps, measure_phases
from traindyno.core.step_log.line import IN_BACKGROUND, phase_line
from traindyno.core.step_log.reader import read_step_log
from traindyno.core.step_log.step_table import tabulate_steps

# 3 s of loading, then steps of 5, 2, 1, 1 and 1 s, of which the fourth waits 0.5 s for a save; and
# an evaluation.
BEFORE = [phase_line("load", START - 3, START)]
AFTER = [
    phase_line("save", START + 8.25, START + 8.75),
    phase_line("write", START + 8.0, START + 9.5, {IN_BACKGROUND: True}),
    phase_line("evaluate", START + 10, START + 14),
]
STEPS = [5.0, 2.0, 1.0, 1.0, 1.0]


def phases_of(*, warmup_steps: int, **attempt: object) -> dict[str, float]:
    log = read_step_log({file_name(): log_lines(step_seconds=STEPS, before=BEFORE, after=AFTER)})
    assert log.measured is not None
    table = tabulate_steps(log.measured)
    return measure_phases([make_attempt(**attempt)], log.measured, table, warmup_steps=warmup_steps)


def test_each_second_is_in_one_phase() -> None:
    phases = phases_of(warmup_steps=2)
    assert list(phases) == [
        "starting",
        "downloading",
        "load",
        "first_step",
        "warmup",
        "steady",
        "evaluate",
        "save",
        "other",
        "uploading",
    ]
    expected = {"load": 3, "first_step": 5, "warmup": 2, "steady": 2.5, "save": 0.5, "evaluate": 4}
    assert {name: phases[name] for name in expected} == pytest.approx(expected)
    # the service calls 100 s training
    assert phases["other"] == pytest.approx(100 - 17)
    assert (phases["starting"], phases["uploading"]) == (60, 20)


def test_the_work_of_a_job_before_and_after_the_program_has_its_name() -> None:
    """The job's training begins 43 s before the log's first phase. In a shared job the run has the
    job's start and end as if it were alone in it: downloads and uploads are beside the training.
    """
    own = phases_of(warmup_steps=2, job_name="job-a1", started_at=START - 46)
    assert [*own][2:4] == ["job_start", "load"]
    assert (own["job_start"], own["other"]) == (43, 100 - 17 - 43)
    share = RunShare(own_seconds=25, start_seconds=60, end_seconds=29, place=1, runs=3)
    shared = phases_of(warmup_steps=2, job_name="job-a1", share=share)
    assert (shared["job_start"], shared["job_end"]) == (60 - 20, 29 - 20)
    assert shared["other"] == pytest.approx(25 - 17)
    late = phases_of(warmup_steps=2, job_name="job-a1", started_at=START + 1)
    assert "job_start" not in late


@pytest.mark.parametrize(
    ("warmup_steps", "expected"),
    [
        (0, {"steady": 9.5}),
        (1, {"first_step": 5.0, "steady": 4.5}),
        (5, {"first_step": 5.0, "warmup": 4.5}),
    ],
)
def test_warm_up_is_the_rest_of_the_steps_before_the_steady_ones(
    warmup_steps: int, expected: dict[str, float]
) -> None:
    phases = phases_of(warmup_steps=warmup_steps)
    stepping = {name: phases[name] for name in ("first_step", "warmup", "steady") if name in phases}
    assert stepping == pytest.approx(expected)


def test_a_log_longer_than_its_job_leaves_nothing_over_and_attempts_add_up() -> None:
    assert phases_of(warmup_steps=2, phase_seconds={"training": 10.0})["other"] == 0
    assert "other" not in phases_of(warmup_steps=2, phase_seconds={"starting": 10.0})
    twice = [make_attempt(number=number) for number in (1, 2)]
    phases = measure_phases(twice, None, None, warmup_steps=0)
    assert phases == {"starting": 120.0, "downloading": 40.0, "other": 200.0, "uploading": 40.0}


def test_steps_of_other_sessions_are_without_their_phases() -> None:
    later = START + 50
    files = {
        file_name(): log_lines(
            step_seconds=[1.0] * 4,
            after=[phase_line("save", START + 1.5, START + 2)],
            is_ended=False,
        ),
        file_name(start=later): log_lines(step_seconds=[1.0] * 6, first_step=3, start=later),
    }
    log = read_step_log(files)
    assert log.measured is not None
    first, measured = divide_steps(log.sessions)
    phases = measure_phases(
        [make_attempt()], log.measured, tabulate_steps(log.measured), warmup_steps=1, others=[first]
    )
    assert measured.session is log.measured
    # three steps are kept, of which half a second was a save; the fourth one was done again
    assert (phases["earlier_steps"], phases["repeated_steps"], phases["save"]) == pytest.approx(
        (2.5, 1.0, 0.5)
    )


def test_a_session_without_steps_has_its_phases_only() -> None:
    (session,) = read_step_log({file_name(): log_lines(step_seconds=[], before=BEFORE)}).sessions
    phases = measure_phases([make_attempt()], session, tabulate_steps(session), warmup_steps=0)
    assert phases["load"] == 3
    assert not {"first_step", "warmup", "steady"} & phases.keys()
