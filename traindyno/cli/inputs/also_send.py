"""The option --also-send: files that travel although the rule leaves them out."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Annotated

import typer

from traindyno.travelling_files import allowed_path

AlsoSendOption = Annotated[
    list[Path] | None,
    typer.Option(
        help="A file or folder that is sent although it is hidden, ignored, named like a credential or a link; repeat "
        "the option for more."
    ),
]


def read_also_send(paths: Sequence[Path] | None) -> Collection[Path]:
    for path in paths or ():
        if not path.exists():
            message = f"{path} does not exist on this machine; accepted: a file or a folder"
            raise typer.BadParameter(message, param_hint="--also-send")
    return frozenset(map(allowed_path, paths or ()))
