"""The steps of a run over all its sessions, each counted once: an interrupted session's work is kept or repeated."""

from collections.abc import Sequence
from dataclasses import dataclass

from traindyno.core.step_log.content import Session
from traindyno.core.step_log.step_table import StepTable, tabulate_steps


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSteps:
    """``kept``: the steps after which a later session continued, or the run ended. ``repeated``: steps that a later
    session did again.
    """

    session: Session
    kept: StepTable
    repeated: StepTable


def divide_steps(sessions: Sequence[Session]) -> list[SessionSteps]:
    """Sessions in order of time. One that resumes after step n keeps what the sessions before it did up to step n.

    Of a thinned log, a merged step that goes beyond step n is repeated as a whole.
    """
    divided: list[SessionSteps] = []
    resumed_at: int | None = None
    for session in reversed([session for session in sessions if session.common_steps]):
        table = tabulate_steps(session)
        first, last = table.ranks[0].steps.first_number, table.numbers[-1]
        end = last + 1 if resumed_at is None else resumed_at
        kept, repeated = tabulate_steps(session, range(first, end)), tabulate_steps(session, range(end, last + 1))
        divided.append(SessionSteps(session=session, kept=kept, repeated=repeated))
        resumed_at = first if resumed_at is None else min(resumed_at, first)
    return divided[::-1]


def wall_seconds(table: StepTable) -> float:
    """The time from the first step's begin to the last one's end, on the rank that took longest."""
    return table.wall_seconds(0, len(table) - 1) if len(table) else 0.0
