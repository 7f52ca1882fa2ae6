"""Replaces an attribute of a class or module for a while, where a library has no argument for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """``owner`` has the attribute itself; an inherited one raises KeyError. It is restored after an error too."""
    original = vars(owner)[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)
