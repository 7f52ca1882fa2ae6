"""How many input channels the runs of a shared job need together, and which of them share one for that reason."""

from traindyno.core.suite.checks.job_limits_check import SHARED_CHANNELS
from traindyno.core.suite.preparation import is_packed, needs_preparation
from traindyno.core.suite.suite import Cell, Suite


def why_too_many(suite: Suite) -> str | None:
    """None if a shared job has room for the channels of one run."""
    count = _own_channels(suite)
    if count <= SHARED_CHANNELS:
        return None
    return f"it reads {count} input channels, and a job that runs share has room for {SHARED_CHANNELS}"


def tokens_apart(cell: Cell, suite: Suite) -> bool | None:
    """Grouping key for job sharing. None unless the channel limit forces cells with different tokens apart."""
    if not needs_preparation(suite.workload) or _own_channels(suite) < SHARED_CHANNELS:
        return None
    return is_packed(cell.settings, suite.workload)


def _own_channels(suite: Suite) -> int:
    """At most, of one run: its model and tokenizer may be in S3, or copied there."""
    workload = suite.workload
    paths = [part.path for part in (workload.model, workload.dataset) if part is not None]
    if workload.tokenizer is not None and not needs_preparation(workload):
        paths.append(workload.tokenizer.path)
    return len(workload.channels) + sum(path is not None for path in paths)
