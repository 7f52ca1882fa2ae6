"""Executions that Step Functions does not start, and MiniStack does: with broken JSON, or a name that is refused."""

import json
import unicodedata
from collections.abc import Mapping
from typing import Any, NoReturn

LONGEST_NAME = 80
REFUSED_CHARACTERS = frozenset('<>{}[]?*"#%\\^|~`$&,;:/\ufffe\uffff')
# Control characters and surrogates.
REFUSED_CATEGORIES = frozenset({"Cc", "Cs"})


def find_start_refusal(request: Mapping[str, Any]) -> tuple[str, str] | None:
    """Error code and message for a StartExecution that AWS refuses; None for any other."""
    name = request.get("name")
    if name is not None and not _is_name(name):
        return "InvalidName", f"Invalid Name: {name!r}"
    try:
        json.loads(request.get("input", "{}"), parse_constant=_refuse)
    except (TypeError, ValueError, RecursionError) as error:
        return "InvalidExecutionInput", f"Invalid State Machine Execution Input: {error}"
    return None


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and 0 < len(name) <= LONGEST_NAME and not any(map(_is_refused, name))


def _is_refused(character: str) -> bool:
    is_refused = character in REFUSED_CHARACTERS or unicodedata.category(character) in REFUSED_CATEGORIES
    return is_refused or character.isspace()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
