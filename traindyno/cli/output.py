"""Output: tables or one JSON document on standard output, messages on standard error."""

import json
import sys
from decimal import Decimal
from enum import StrEnum
from typing import Any

from rich.console import Console
from rich.text import Text


class OutputFormat(StrEnum):
    TABLE = "table"
    JSON = "json"


WIDTH_WITHOUT_TERMINAL = 160
STANDARD_OUTPUT = Console(highlight=False, width=None if sys.stdout.isatty() else WIDTH_WITHOUT_TERMINAL)
SIMULATED = Text("SIMULATED: no training job ran; these figures come from a trace", style="bold red")
STANDARD_ERROR = Console(stderr=True, highlight=False, soft_wrap=True)


def tell(message: str) -> None:
    STANDARD_ERROR.print(message, markup=False)


def print_json(document: Any) -> None:
    sys.stdout.write(json.dumps(document, indent=2, default=_json_value) + "\n")


def _json_value(value: object) -> Any:
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} has no JSON form")
