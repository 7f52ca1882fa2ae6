"""The cause of a failure, sent by the process that failed first to the others: through the job's store, or a file."""

import json

from torch import distributed

from traindyno.callbacks import failure

KEY = "traindyno/failure"


def publish(outcome: str, message: str) -> None:
    if not distributed.is_initialized():
        return
    try:
        distributed.distributed_c10d._get_default_store().set(KEY, json.dumps([outcome, message]))
    except (RuntimeError, distributed.DistStoreError):
        return  # the store's host has ended; this host's processes still read the failure file


def find() -> tuple[str, str] | None:
    """Outcome and message of the process that failed first; None while there is none."""
    outcome, message = failure.reported_failure()
    if outcome:
        return outcome, message
    if not distributed.is_initialized():
        return None
    store = distributed.distributed_c10d._get_default_store()
    try:
        if not store.check([KEY]):
            return None
        found_outcome, found_message = json.loads(store.get(KEY))
    except (RuntimeError, distributed.DistStoreError):
        return None
    return found_outcome, found_message
