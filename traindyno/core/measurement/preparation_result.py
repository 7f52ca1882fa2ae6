"""The result of a preparation: its outcome, its cost, and its time by phase."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import PaidPrice
from traindyno.core.suite.preparation import DataPreparation

PREPARATION_RESULT = Format(name="preparation result", version=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationResult:
    """``phases_seconds``: name of a phase → seconds, of all attempts."""

    preparation: DataPreparation
    outcome: Outcome
    message: str | None
    log_tail: tuple[str, ...]
    attempts: tuple[Attempt, ...]
    phases_seconds: Mapping[str, float]
    price: PaidPrice
    is_simulated: bool = False

    @property
    def billable_seconds(self) -> float | None:
        """All attempts together; None if any of them is unknown."""
        seconds = [each.billable_seconds for each in self.attempts]
        known = [each for each in seconds if each is not None]
        return sum(known) if known and len(known) == len(seconds) else None


def preparation_result_document(result: PreparationResult) -> dict[str, Any]:
    return PREPARATION_RESULT.mark(to_document(result))


def parse_preparation_result(document: Mapping[str, Any]) -> PreparationResult:
    """Raises VersionUnknown."""
    return from_document(PREPARATION_RESULT.read(document), PreparationResult)
