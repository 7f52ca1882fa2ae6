"""The options of `traindyno plan`, and the files that `run` and `plan` send though the rule leaves
them out.
"""

from pathlib import Path
from typing import Annotated

import typer

from traindyno.cli.option_values import existing_paths

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
AlsoSendOption = Annotated[
    list[Path] | None,
    typer.Option(
        callback=existing_paths,
        help="A file or folder that is sent although it is hidden, ignored, named like a "
        "credential or a link; repeat the option for more.",
    ),
]
