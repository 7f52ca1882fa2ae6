"""What a feature adds to the suite file."""

from collections.abc import Iterator
from typing import Any, ClassVar

from traindyno.core.errors import Problem


class SuiteFeature:
    """A feature with fields of its own in the suite file.

    ``name`` is that of its part of a report, and of its section there.
    """

    name: ClassVar[str]
    #: A dataclass of its fields, which stand at the top of the file and may be left out.
    section: ClassVar[type | None] = None
    #: What the file holds that the suite may name for the field ``name``; None: it names none.
    file_shape: ClassVar[str | None] = None

    def check(self, section: Any) -> Iterator[Problem]:
        """The rules about its fields, beside their types and bounds."""
        yield from ()
