"""The picture of the live display shows one moment of a run, as the terminal did."""

import re
from dataclasses import replace
from html import unescape

import pytest

from bench.display_picture import draw, ended_lines, moment_to_show
from tests.unit.cli.test_progress import JOB, state
from traindyno.api.execution_state import State

STATES: list[State] = [
    state(ended=0, jobs=()),
    state(ended=1),
    state(ended=2),
    replace(state(ended=2, now=1_070), jobs=(replace(JOB, step=None),)),
    state(ended=3),
    state(ended=4, jobs=(), status="SUCCEEDED"),
]


def shown_text(svg: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", svg)).replace("\N{NO-BREAK SPACE}", " ")


def test_the_moment_is_the_latest_with_a_step_before_two_thirds_have_ended() -> None:
    # 2 of 4 runs have ended in the third state; in the fourth no step is known; 3 of 4 are more
    # than two thirds.
    assert moment_to_show(STATES) == 2
    with pytest.raises(ValueError, match="expected a state with a job at a step"):
        moment_to_show(STATES[:1])


def test_picture_has_the_command_ended_runs_and_the_running_job_and_loads_nothing() -> None:
    svg = draw("$ traindyno run suites/quickstart.yaml --local", STATES)
    text = shown_text(svg)
    for part in (
        "$ traindyno run suites/quickstart.yaml --local",
        "2/4 compiled · batch 4, trial 2: completed, 12.3 samples/s",
        "batch 8: training, step 12 of 20",
        "2 of 4",
    ):
        assert part in text, part
    assert "trial 3" not in text
    assert not re.search(r"url\(.?https?:|@font-face", svg)


def test_each_run_is_told_once() -> None:
    assert [line.split(" ")[0] for line in ended_lines(STATES)] == ["1/4", "2/4", "3/4", "4/4"]
