"""Which EventBridge patterns match an event, as far as the service can evaluate them."""

from collections.abc import Mapping
from typing import Any


def is_match(pattern: Mapping[str, Any], event: Mapping[str, Any]) -> bool | None:
    """None if the pattern uses a comparison other than plain values and prefixes: EventBridge must then decide."""
    answers = [_member_matches(wanted, event.get(name)) for name, wanted in pattern.items()]
    if False in answers:
        return False
    return None if None in answers else True


def _member_matches(wanted: Any, found: Any) -> bool | None:
    if isinstance(wanted, Mapping):
        return is_match(wanted, found) if isinstance(found, Mapping) else False
    if not isinstance(wanted, list):
        return None
    values = found if isinstance(found, list) else [found]
    answers = [_value_matches(choice, value) for choice in wanted for value in values]
    if True in answers:
        return True
    return None if None in answers else False


def _value_matches(choice: Any, value: Any) -> bool | None:
    if not isinstance(choice, Mapping):
        return bool(choice == value)
    prefix = choice.get("prefix")
    if len(choice) == 1 and isinstance(prefix, str):
        return isinstance(value, str) and value.startswith(prefix)
    return None
