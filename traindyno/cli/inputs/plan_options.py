"""The options of `traindyno plan`."""

from pathlib import Path
from typing import Annotated

import typer

from traindyno.cli.option_values import finite

MemoryOption = Annotated[
    bool,
    typer.Option(
        "--memory", help="Estimate each cell's memory per device on this machine; needs the packages of extra train."
    ),
]
PricesOption = Annotated[
    Path | None,
    typer.Option(help="A file of prices: {region: us-east-1, as_of: 2026-11-21, prices: {ml.g5.xlarge: 1.408}}."),
]
QuotasOption = Annotated[
    Path | None,
    typer.Option(
        help="A file of quotas: {region: us-east-1, quotas: {NAME: 8, NAME: {applied: 8, in_use: 2}}}; NAME as in "
        'Service Quotas, such as "ml.g5.xlarge for training job usage".'
    ),
]
SpotDiscountOption = Annotated[
    float | None,
    typer.Option(
        help="Assume that spot saves this share of the on-demand price: 0.6 is 60 %.",
        min=0,
        max=0.99,
        callback=finite,
    ),
]
SpotInterruptionsOption = Annotated[
    float | None,
    typer.Option(help="Assume this many spot interruptions per hour of a job.", min=0, max=60, callback=finite),
]
