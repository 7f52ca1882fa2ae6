"""The items of a wave: a list in S3, of which the state machine's Distributed Map starts one run each.

A Distributed Map reads a list only, so each item has the version.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from traindyno.core.documents.versions import Format
from traindyno.core.jobs.job import owner_document
from traindyno.core.suite.runs import waiting_seconds
from traindyno.core.suite.suite import Limits, Run

WAVE_ITEM = Format(name="wave item", version=1, unmarked=1)


def wave_items(runs: Iterable[Run], limits: Limits) -> list[dict[str, Any]]:
    seconds = waiting_seconds(limits)
    return [WAVE_ITEM.mark({**owner_document(run), "timeout_seconds": seconds}) for run in runs]


def run_ids_of(items: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """Raises VersionUnknown."""
    return tuple(str(WAVE_ITEM.read(item)["run"]["run_id"]) for item in items)
