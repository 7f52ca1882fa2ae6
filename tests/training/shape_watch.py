"""Compares the shapes of tensors in docstrings with those that functions get and give while a model
trains.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

from tests import tensor_shapes
from tests.tensor_shapes import Function

SAYING = {
    (str(function.file), function.name): function
    for function in tensor_shapes.functions()
    if function.of_parameters or function.returned
}


class Watch:
    """Collects in ``wrong`` the calls whose tensors are not as the docstring says.

    A letter has one size in a call.
    """

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self.wrong: set[str] = set()
        self._sizes: dict[FrameType, dict[str, int]] = {}

    def __call__(self, frame: FrameType, event: str, given: Any) -> None:
        if event not in ("call", "return"):  # most events are calls of functions in C
            return
        function = SAYING.get((frame.f_code.co_filename, frame.f_code.co_qualname))
        if function is None:
            return
        if event == "call" and frame not in self._sizes:
            self._sizes[frame] = {}
            for name, shapes in function.of_parameters.items():
                self._compare(function, frame, name, shapes, frame.f_locals.get(name))
        elif event == "return":
            if function.returned:
                self._compare(function, frame, "returns", function.returned, given)
            del self._sizes[frame]

    def _compare(
        self, function: Function, frame: FrameType, name: str, shapes: list[str], value: Any
    ) -> None:
        for shape in shapes_in(value):
            self.seen.add(function.name)
            sizes = tensor_shapes.fit(shapes, shape, self._sizes[frame])
            if sizes is None:
                self.wrong.add(
                    f"{function.name}: {name} {' or '.join(shapes)}, found {shape} with "
                    f"{self._sizes[frame]}"
                )
            else:
                self._sizes[frame] = sizes


def shapes_in(value: Any) -> Iterator[tuple[int, ...]]:
    """Finds tensors and arrays, also in tuples, lists and mappings."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        for part in value:
            yield from shapes_in(part)
    elif hasattr(value, "shape"):
        yield tuple(value.shape)


@contextmanager
def watched_shapes() -> Iterator[Watch]:
    watch = Watch()
    sys.setprofile(watch)
    try:
        yield watch
    finally:
        sys.setprofile(None)
