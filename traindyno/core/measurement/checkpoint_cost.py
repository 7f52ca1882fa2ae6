"""The cost of a session's checkpoints: the time that steps waited for them, and the bytes written."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

from traindyno.core.step_log.content import Phase, Session
from traindyno.core.step_log.line import CHECKPOINT, CHECKPOINT_WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointCost:
    """Means of one checkpoint. ``seconds``: the time without steps, of the slowest process. ``bytes``: of all
    processes.

    ``write_seconds``: until the slowest process had written its files, while steps continued; None if steps waited.
    ``bytes`` is None if the script does not log it.
    """

    count: int
    seconds: float
    bytes: float | None
    write_seconds: float | None


def measure_checkpoints(session: Session) -> CheckpointCost | None:
    """None without checkpoints."""
    waits = [_named(process.phases, CHECKPOINT) for process in session.processes]
    count = min((len(phases) for phases in waits), default=0)
    if not count:
        return None
    writes = [_named(process.phases, CHECKPOINT_WRITE) for process in session.processes]
    written = min(len(phases) for phases in writes)
    return CheckpointCost(
        count=count,
        seconds=_mean_of_slowest(waits, count),
        bytes=_mean_bytes(writes, written) if written else _mean_bytes(waits, count),
        write_seconds=_mean_of_slowest(writes, written) if written else None,
    )


def _named(phases: Iterable[Phase], name: str) -> list[Phase]:
    return [phase for phase in phases if phase.name == name]


def _mean_of_slowest(by_process: list[list[Phase]], count: int) -> float:
    return fmean(max(phases[number].seconds for phases in by_process) for number in range(count))


def _mean_bytes(by_process: list[list[Phase]], count: int) -> float | None:
    sizes = [phase.facts.get("bytes") for phases in by_process for phase in phases[:count]]
    known = [size for size in sizes if isinstance(size, int)]
    return sum(known) / count if known else None
