"""What slices add to a verdict: figures of a cell, which its row keeps, and sentences about
them.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from traindyno.core.documents.stored import StoredPart
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.settings import Settings
from traindyno.slices.slowness import verdict as slowness

# Made of the settings of a cell and its measured trials.
CELL_PARTS: Sequence[Callable[[Settings, Sequence[RunResult]], StoredPart]] = [
    slowness.measure_steps,
]
# The part, and what tells of it after the label of the cell: of the best cell and of its runner-up.
SENTENCES: Sequence[tuple[type[Any], Callable[[str, Any], Iterator[str]]]] = [
    (slowness.CellSteps, slowness.describe_steps),
]
