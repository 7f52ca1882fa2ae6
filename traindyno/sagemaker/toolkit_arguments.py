"""The arguments of a script, as SageMaker's training toolkit makes them of its hyperparameters."""

from collections.abc import Mapping
from typing import Any


def command_arguments(hyperparameters: Mapping[str, Any]) -> list[str]:
    """``--key value`` in the order of the keys. Booleans are written as Python prints them, mappings as ``k=v,k=v``."""
    arguments: list[str] = []
    for name in sorted(hyperparameters):
        arguments += [f"--{name}" if len(name) > 1 else f"-{name}", _argument(hyperparameters[name])]
    return arguments


def _argument(value: Any) -> str:
    if isinstance(value, Mapping):
        return ",".join(f"{name}={item}" for name, item in sorted(value.items()))
    return "" if value is None else str(value)
