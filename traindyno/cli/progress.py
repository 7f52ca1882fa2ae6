"""Follow an execution to its end: a live display on a terminal, plain lines elsewhere; both on standard error."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from traindyno.aws.executions import Execution
from traindyno.cli.target import Target
from traindyno.core.costs.quantity_text import number_text
from traindyno.core.suite.preparation import RUN_ID_PREFIX

LOCAL_POLL_SECONDS = 1.0
AWS_POLL_SECONDS = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """``ended`` are run rows with an outcome; ``working`` are the labels of runs whose job is under way.

    ``preparations`` are the rows of jobs that prepare the data, ended or not; they are no runs.
    """

    execution: Execution
    runs_total: int | None
    ended: Mapping[str, Mapping[str, Any]]
    working: tuple[str, ...]
    preparations: Mapping[str, Mapping[str, Any]]

    @property
    def prepared(self) -> dict[str, Mapping[str, Any]]:
        return {run_id: row for run_id, row in self.preparations.items() if "outcome" in row}

    @property
    def is_preparing(self) -> bool:
        return len(self.prepared) < len(self.preparations)


def follow(target: Target, execution_id: str, console: Console) -> Execution:
    """Returns when the execution has ended. Interrupting it leaves the execution running."""
    seconds = LOCAL_POLL_SECONDS if target.is_local else AWS_POLL_SECONDS
    display = _follow_live if console.is_terminal else _follow_plainly
    reader = PacedReader(lambda: read_state(target, execution_id), seconds)
    return display(reader.read, console, reader.pause)


class PacedReader:
    """Reading the rows of thousands of runs takes its time, of which it may have a tenth."""

    def __init__(self, read: Callable[[], State], seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._took_seconds = 0.0

    def read(self) -> State:
        began = time.monotonic()
        state = self._read()
        self._took_seconds = time.monotonic() - began
        return state

    def pause(self) -> None:
        time.sleep(max(self._seconds, 9 * self._took_seconds))


def read_state(target: Target, execution_id: str) -> State:
    execution = target.executions.describe(execution_id)
    suite = target.suites.read(execution_id) or {}
    rows = {row["sk"].removeprefix("run#"): row for row in target.suites.list_runs(execution_id)}
    preparations = {run_id: row for run_id, row in rows.items() if run_id.startswith(RUN_ID_PREFIX)}
    runs = {run_id: row for run_id, row in rows.items() if run_id not in preparations}
    total = suite.get("run_count")
    return State(
        execution=execution,
        runs_total=int(total) if total is not None else None,
        ended={run_id: row for run_id, row in runs.items() if "outcome" in row},
        working=tuple(sorted(run_id for run_id, row in runs.items() if "outcome" not in row and row.get("jobs"))),
        preparations=preparations,
    )


def _follow_live(read: Callable[[], State], console: Console, pause: Callable[[], None]) -> Execution:
    progress = Progress(
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    )
    bar = progress.add_task("planning", total=None)
    told: set[str] = set()
    with Live(progress, console=console, refresh_per_second=4):
        while True:
            state = read()
            for run_id in sorted(state.ended.keys() - told):
                progress.console.print(_line(run_id, state.ended[run_id]), markup=False)
                told.add(run_id)
            for run_id in sorted(state.prepared.keys() - told):
                progress.console.print(_prepared_line(run_id, state.prepared[run_id]), markup=False)
                told.add(run_id)
            progress.update(bar, description=_doing(state), total=state.runs_total, completed=len(state.ended))
            if not state.execution.is_running:
                return state.execution
            pause()


def _follow_plainly(read: Callable[[], State], console: Console, pause: Callable[[], None]) -> Execution:
    told: set[str] = set()
    told_prepared: set[str] = set()
    is_told_preparing = False
    while True:
        state = read()
        for run_id in sorted(state.ended.keys() - told):
            told.add(run_id)
            of = f"/{state.runs_total}" if state.runs_total else ""
            console.print(f"{len(told)}{of} {_line(run_id, state.ended[run_id])}", markup=False)
        if state.is_preparing and not is_told_preparing:
            is_told_preparing = True
            console.print("preparing the data", markup=False)
        for run_id in sorted(state.prepared.keys() - told_prepared):
            told_prepared.add(run_id)
            console.print(_prepared_line(run_id, state.prepared[run_id]), markup=False)
        if not state.execution.is_running:
            return state.execution
        pause()


def _doing(state: State) -> str:
    if state.is_preparing:
        return "preparing the data"
    return f"running {', '.join(state.working[:3])}" if state.working else "working"


def _prepared_line(run_id: str, row: Mapping[str, Any]) -> str:
    seconds = row.get("billable_seconds")
    billed = f", billed {number_text(float(seconds))} s" if seconds is not None else ""
    return f"data preparation {run_id.removeprefix(RUN_ID_PREFIX)} {row['outcome']}{billed}"


def _line(run_id: str, row: Mapping[str, Any]) -> str:
    rate = row.get("samples_per_second")
    speed = f" {number_text(float(rate))} samples/s" if rate is not None else ""
    label = f" {row['label']}" if row.get("label") else ""
    why = f": {row['message']}" if row.get("message") and row["outcome"] != "completed" else ""
    return f"{run_id}{label} {row['outcome']}{speed}{why}"
