"""``python -m bench.display_picture``: runs a suite in the running local cloud and draws
docs/live-display.svg.

The picture is what ``traindyno run`` shows on a terminal about two thirds of the way through the
planned runs, or in a race, which ends before, at its last step.
"""

import argparse
import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from localcloud.home import REPO_ROOT
from traindyno.api.execution_state import State, read_state
from traindyno.api.lab_target import LabTarget
from traindyno.api.progress import LOCAL_POLL_SECONDS, ended_line, observe
from traindyno.cli.display.progress import render_state
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.output import Terminal

PICTURE = REPO_ROOT / "docs" / "live-display.svg"
SUITE = Path("suites") / "quickstart.yaml"
WIDTH_CHARACTERS = 104
SHOWN_SHARE = 2 / 3
# The picture loads no font from elsewhere: GitHub and browsers refuse to.
LOADED_OR_COMMENT = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.display_picture", description=__doc__)
    parser.add_argument("suite", nargs="?", type=Path, default=SUITE)
    suite = parser.parse_args(arguments).suite
    started = subprocess.run(
        [
            sys.executable,
            "-m",
            "traindyno",
            "run",
            str(suite),
            "--local",
            "--no-wait",
            "--format",
            "json",
        ],
        cwd=REPO_ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    target = LabChoice(local=True).find_target()
    states = list(states_of(target, json.loads(started.stdout)["execution_id"]))
    PICTURE.write_text(draw(f"$ traindyno run {suite} --local", states), encoding="utf-8")
    sys.stderr.write(f"{PICTURE} shows {states[-1].execution.execution_id}\n")


def states_of(target: LabTarget, execution_id: str) -> Iterator[State]:
    """Until the moment to show has passed; the execution continues."""
    for seen in observe(
        lambda: read_state(target, execution_id), target.find_stall, LOCAL_POLL_SECONDS
    ):
        if isinstance(seen, State):
            yield seen
            if not seen.execution.is_running or not is_before_moment(seen):
                return


def draw(command: str, states: Sequence[State]) -> str:
    """An SVG of the terminal at the moment to show.

    Raises ValueError if no job was seen at a step.
    """
    shown = moment_to_show(states)
    console = Terminal(
        file=io.StringIO(),
        record=True,
        width=WIDTH_CHARACTERS,
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(command)
    for line in ended_lines(states[: shown + 1]):
        console.print(line)
    console.print(render_state(states[shown]))
    return LOADED_OR_COMMENT.sub("", console.export_svg(title="traindyno run"))


def moment_to_show(states: Sequence[State]) -> int:
    """The latest state with a job at a known step before more than two thirds of the runs have
    ended.
    """
    moments = [
        number
        for number, state in enumerate(states)
        if any(job.step for job in state.jobs) and is_before_moment(state)
    ]
    if not moments:
        raise ValueError(
            "expected a state with a job at a step of its training, got none; run a longer suite"
        )
    return moments[-1]


def is_before_moment(state: State) -> bool:
    return state.runs_planned is None or len(state.ended) <= SHOWN_SHARE * state.runs_planned


def ended_lines(states: Sequence[State]) -> Iterator[str]:
    """The lines in the order in which the runs ended."""
    told: dict[str, None] = {}
    for state in states:
        for run_id in sorted(state.ended.keys() - told.keys()):
            told[run_id] = None
            yield ended_line(len(told), state.runs_planned, state.ended[run_id])


if __name__ == "__main__":
    main()
