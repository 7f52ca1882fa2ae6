"""The group of all commands, which shows what it refuses without what a terminal would obey."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from traindyno.cli.commands.run_commands import INTERRUPTED
from traindyno.cli.option_values import in_our_words
from traindyno.cli.output import tell
from traindyno.core.documents.problems import visible


class CommandGroup(TyperGroup):
    """Typer prints the message of a refused argument itself, with the argument in it, and ends
    without a word after Ctrl-C.
    """

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        with _visible_refusal():
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: Any) -> Any:
        with _visible_refusal():
            return super().invoke(ctx)


@contextmanager
def _visible_refusal() -> Iterator[None]:
    try:
        yield
    except typer.TyperException as error:
        error.message = visible(in_our_words(error))
        raise
    except KeyboardInterrupt:
        tell("interrupted")
        raise typer.Exit(INTERRUPTED) from None
