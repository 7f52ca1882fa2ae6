"""How much of a cell's model is trained, and at which learning rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from traindyno.core.costs.quantity_text import count_text, share_text
from traindyno.core.documents.stored import StoredPart
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.run.processes import planned_learning_rate
from traindyno.core.run.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class CellWeights(StoredPart):
    """The weights that a built-in task trains in a cell."""

    kind: ClassVar[str] = "weights"
    #: All parameters, an adapter's included; None if no measured trial has logged them.
    parameters: int | None = None
    #: The parameters that train beside an adapter's frozen base; None if all do.
    trained: int | None = None
    learning_rate: float | None = None

    def __str__(self) -> str:
        rate = "" if self.learning_rate is None else f" at learning rate {self.learning_rate:g}"
        if self.trained is None or self.parameters is None:
            return f"all weights{rate}"
        share = share_text(self.trained / self.parameters)
        return f"{count_text(self.trained)} of {count_text(self.parameters)} ({share}){rate}"


def measure_weights(settings: Settings, measured: Sequence[RunResult]) -> CellWeights:
    models = [
        result.measured.model for result in measured if result.measured and result.measured.model
    ]
    return CellWeights(
        parameters=models[0].parameters if models else None,
        trained=models[0].trained if models else None,
        learning_rate=planned_learning_rate(settings),
    )
