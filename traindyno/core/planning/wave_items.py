"""The items of a wave: a list in S3, of which the state machine's Distributed Map starts one job each.

A Distributed Map reads a list only, so each item has the version.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from traindyno.core.documents.versions import Format
from traindyno.core.jobs.job import Job, owner_document
from traindyno.core.suite.runs import waiting_seconds
from traindyno.core.suite.suite import Limits

WAVE_ITEM = Format(name="wave item", version=1)


def wave_items(jobs: Iterable[Job], limits: Limits) -> list[dict[str, Any]]:
    """``run`` in an item is that of a job of its own; ``job`` has several."""
    seconds = waiting_seconds(limits)
    owners = (job if job.is_shared else job.runs[0] for job in jobs)
    return [WAVE_ITEM.mark({**owner_document(owner), "timeout_seconds": seconds}) for owner in owners]


def run_ids_of(items: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Raises VersionUnknown."""
    return tuple(str(run["run_id"]) for item in items for run in _runs_of(WAVE_ITEM.read(item)))


def _runs_of(item: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(item["job"]["runs"]) if "job" in item else [item["run"]]
