"""The options of `traindyno plan`, and the files that `run` and `plan` send though the rule leaves
them out.
"""

import os
from pathlib import Path
from typing import Annotated

import typer

NoMemoryOption = Annotated[
    bool,
    typer.Option(
        "--no-memory",
        envvar="TRAINDYNO_NO_MEMORY",
        help="Don't estimate whether each cell fits into its devices: that takes seconds for a "
        "model that is new.",
    ),
]
PricesOption = Annotated[
    Path | None,
    typer.Option(
        help="A file of prices: {region: us-east-1, as_of: 2026-11-21, prices: {ml.g5.xlarge: "
        "1.408}}."
    ),
]
QuotasOption = Annotated[
    Path | None,
    typer.Option(
        help="A file of quotas: {region: us-east-1, quotas: {NAME: 8, NAME: "
        "{applied: 8, in_use: 2}}}; NAME as in "
        'Service Quotas, such as "ml.g5.xlarge for training job usage".'
    ),
]


def check_also_send(paths: list[Path] | None) -> list[Path] | None:
    for path in paths or ():
        if not os.path.exists(path):  # noqa: PTH110  (Path.exists raises for a name that is too long)
            raise typer.BadParameter(
                f"{path} does not exist on this machine; accepted: a file or a folder"
            )
    return paths


AlsoSendOption = Annotated[
    list[Path] | None,
    typer.Option(
        callback=check_also_send,
        help="A file or folder that is sent although it is hidden, ignored, named like a "
        "credential or a link; repeat the option for more.",
    ),
]
