"""Results of cases, kept until their group is complete: a measurement that was cut off goes on with
what it lacks.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

import cattrs

from bench.figures import Spread
from bench.tell import tell

Result = TypeVar("Result")
CONVERTER = cattrs.Converter(forbid_extra_keys=True)
CONVERTER.register_structure_hook(
    float | Spread | None,
    lambda value, _: CONVERTER.structure(value, Spread) if isinstance(value, dict) else value,
)
TELL_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Results of one group that are kept, so that a measurement can go on after it was cut off."""

    #: The folder of the results of one group and one commit; None keeps nothing.
    folder: Path | None
    #: Whether kept results are used. Otherwise they are measured again.
    is_resumed: bool = False

    def case(self, name: str, kind: type[Result], measure: Callable[[], Result]) -> Result:
        """The case's result. While it is measured, a line each minute says for how long."""
        path = self._path(name)
        if path is not None and path.exists() and self.is_resumed:
            tell(f"{name}: kept from before")
            return CONVERTER.structure(json.loads(path.read_text(encoding="utf-8")), kind)
        with telling_each_minute(name):
            result = measure()
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(CONVERTER.unstructure(result)), encoding="utf-8")
        return result

    def _path(self, name: str) -> Path | None:
        return (
            None
            if self.folder is None
            else self.folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.json"
        )


@contextmanager
def telling_each_minute(name: str, seconds: float = TELL_SECONDS) -> Iterator[None]:
    ended = Event()

    def tell_progress() -> None:
        passed = seconds
        while not ended.wait(seconds):
            tell(f"{name}: {passed / 60:g} min so far")
            passed += seconds

    thread = Thread(target=tell_progress, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
