"""Whether a lab has suites in flight, and so may not be deleted."""

from traindyno.aws.executions import Executions
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.store.attempts import AttemptRows

MOST_NAMED = 5


def refusal_to_delete(*, lab: str, executions: Executions, attempts: AttemptRows) -> str | None:
    """None for an idle lab. In flight: an execution that runs, or a training job whose end is not recorded yet."""
    found = dict.fromkeys(executions.list_running())
    found |= dict.fromkeys(row.owner.execution_id for row in attempts.list_open() if row.end is None)
    if not found:
        return None
    option = "" if lab == DEFAULT_LAB else f" --lab {lab}"
    commands = "; ".join(f"traindyno stop {name}{option}" for name in list(found)[:MOST_NAMED])
    more = f"; and so on for {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    count = "1 suite" if len(found) == 1 else f"{len(found)} suites"
    return (
        f"lab {lab} has {count} in flight, and nothing was deleted. Stop with: {commands}{more}. Then destroy it again."
    )
