"""What was busy on the hosts of contended trials, and what helps."""

from collections.abc import Iterator, Sequence

from traindyno.core.costs.quantity_text import joined
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.measurement.contention import MOST_PROGRAMS
from traindyno.core.step_log.line import LOCAL_CLOUD
from traindyno.core.suite.suite import MOST_CONTENDED_REPEATS
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.verdict import Verdict

# Nobody can close the services, or the command line that follows the suite.
OWN_PROGRAMS = (LOCAL_CLOUD, "traindyno")


def programs_text(rows: Sequence[CellRow]) -> str:
    """`` (most CPU time: firefox, code)``; empty where the programs are unknown."""
    names = _programs(rows)
    return f" (most CPU time: {', '.join(names)})" if names else ""


def describe_remedies(verdict: Verdict) -> Iterator[str]:
    """What a person can do so that the trials are not slowed down again."""
    rows = [row for row in verdict.rows if row.contended_trials]
    if not rows:
        return
    if names := [name for name in _programs(rows) if name not in OWN_PROGRAMS]:
        yield f"Close {joined(names)} while the suite runs{', or what you can of them' if names[1:] else ''}."
    if any(row.instance.startswith(LOCAL_PREFIX) and row.instance_count > 1 for row in rows):
        yield "A smaller instance_count on this machine has fewer processes, and leaves cores to other work."
    repeats = verdict.max_contended_repeats
    if repeats is not None and repeats < MOST_CONTENDED_REPEATS:
        yield (
            "Where the other work comes and goes, raise limits.max_contended_repeats (now"
            f" {repeats}, at most {MOST_CONTENDED_REPEATS}): it limits the repeats of a trial whose host was busy."
        )


def _programs(rows: Sequence[CellRow]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row.busy_programs))[:MOST_PROGRAMS]
