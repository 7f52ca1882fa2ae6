"""The state of an execution as a table, which a terminal redraws in place."""

from rich.console import Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table

from traindyno.api.execution_state import State
from traindyno.api.progress_text import state_rows

BAR_WIDTH = 30


def render_state(state: State) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, text in state_rows(state):
        table.add_row(name, _bar(state, text) if name == "runs" else text)
    return Group("", table)


def _bar(state: State, count: str) -> RenderableType:
    bar = Table.grid(padding=(0, 1))
    bar.add_row(ProgressBar(total=state.runs_planned or 1, completed=state.runs_ended, width=BAR_WIDTH), count)
    return bar
