"""Which cells each round of a search measured, and the round's billed time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from traindyno.core.measurement.run_result import RunResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """The runs that one round of the execution was planned with."""

    number: int
    run_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOutcome:
    """``trials`` by cell id, of the runs that have a result. ``billable_seconds`` is None if one's is unknown."""

    number: int
    planned: int
    trials: Mapping[str, int]
    billable_seconds: float | None
    #: Cell id → how much slower at least, of cells that were outpaced in the round.
    outpaced: Mapping[str, str] = field(default_factory=dict)


def follow_search(rounds: Sequence[Round], results: Sequence[RunResult]) -> tuple[RoundOutcome, ...]:
    by_run = {result.run.run_id: result for result in results}
    outcomes = []
    for each in sorted(rounds, key=lambda found: found.number):
        done = [by_run[run_id] for run_id in each.run_ids if run_id in by_run]
        trials: dict[str, int] = {}
        for result in done:
            trials[result.run.cell.cell_id] = trials.get(result.run.cell.cell_id, 0) + 1
        billed = [_instance_seconds(result) for result in done]
        outcomes.append(
            RoundOutcome(
                number=each.number,
                planned=len(each.run_ids),
                trials=trials,
                outpaced={result.run.cell.cell_id: result.bound.text for result in done if result.bound},
                billable_seconds=None if None in billed else sum(value for value in billed if value is not None),
            )
        )
    return tuple(outcomes)


def _instance_seconds(result: RunResult) -> float | None:
    """Billed seconds of all instances."""
    if result.billable_seconds is None:
        return None
    return result.billable_seconds * result.run.cell.settings.instance_count
