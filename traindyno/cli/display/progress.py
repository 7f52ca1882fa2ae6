"""The progress of an execution on standard error: a live display on a terminal, plain lines
otherwise.
"""

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table

from traindyno.api.execution_state import State
from traindyno.api.progress import Display, PlainDisplay, state_rows
from traindyno.cli.output import Terminal


def render_state(state: State) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for row in state_rows(state):
        table.add_row(*row)
    return Group("", table)


def display_on(console: Terminal) -> Display:
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console.print)


class LiveDisplay(Display):
    """Finished runs above, the current state below.

    The console redraws the state after each line.
    """

    def __init__(self, console: Terminal) -> None:
        super().__init__(console.print)
        self._live = Live(console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> "LiveDisplay":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def show(self, state: State) -> None:
        self._live.update(render_state(state))
