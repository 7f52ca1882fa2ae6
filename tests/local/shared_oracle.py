"""Recomputes from raw records what executions with shared jobs did: a run has one end, and a bill
is shared out.
"""

from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from tests.local.chaos_lab import ChaosLab
from tests.local.oracle import Evidence, check_ended, check_outcomes, check_paid, owner_of

MILLISECONDS = Decimal(1000)
# The run was killed, or what it ran on died twice under it.
OUTCOMES = {"completed", "out_of_memory", "killed", "internal_error"}


def check_shared(
    evidence: Evidence, execution_id: str, receipt: dict[str, Any], ends: Counter[str]
) -> list[str]:
    """What is wrong with an execution that succeeded.

    ``ends``: run id → in how many jobs it has files of its end.
    """
    return [
        *check_outcomes(evidence, execution_id, OUTCOMES),
        *_check_jobs(evidence, execution_id),
        *_check_ends(evidence, execution_id, ends),
        *_check_shares(evidence, execution_id),
        *check_paid(evidence, execution_id, receipt),
        *check_ended(evidence, execution_id),
    ]


def count_ends(chaos: ChaosLab, execution_id: str) -> Counter[str]:
    s3 = chaos.client("s3")
    bucket = chaos.deployment().bucket
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=f"runs/{execution_id}/"
    )
    keys = [item["Key"].split("/") for page in pages for item in page.get("Contents", ())]
    return Counter(
        run_id for run_id, _ in {(key[-4], key[-2]) for key in keys if key[-3] == "ended"}
    )


def shared_jobs(evidence: Evidence, execution_id: str) -> dict[str, list[str]]:
    """Job id → the names of its attempts, in order."""
    by_job: dict[str, list[tuple[int, str]]] = {}
    for name, attempt in evidence.attempts(execution_id).items():
        kind, owner = owner_of(attempt)
        if kind == "job":
            by_job.setdefault(owner["job_id"], []).append((int(attempt["number"]), name))
    return {job_id: [name for _, name in sorted(attempts)] for job_id, attempts in by_job.items()}


def _check_jobs(evidence: Evidence, execution_id: str) -> Iterator[str]:
    attempts = evidence.attempts(execution_id)
    key = f"execution#{execution_id}"
    carried: Counter[str] = Counter()
    for job_id, names in shared_jobs(evidence, execution_id).items():
        carried.update(run["run_id"] for run in owner_of(attempts[names[0]])[1]["runs"])
        if {*names} != set(evidence.table[key, f"job#{job_id}"]["jobs"]):
            yield f"{job_id}: its row names other jobs than {names}"
        if [int(attempts[name]["number"]) for name in names] != [*range(1, len(names) + 1)]:
            yield f"{job_id}: its attempts do not count from 1: {names}"
        if missing := {*names} - evidence.ledger.keys():
            yield f"{job_id}: attempts without a job: {sorted(missing)}"
    if carried != Counter(dict.fromkeys(evidence.results(execution_id), 1)):
        yield f"runs in several jobs, or in none: {carried}"


def _check_ends(evidence: Evidence, execution_id: str, ends: Counter[str]) -> Iterator[str]:
    for run_id, result in evidence.results(execution_id).items():
        if ends[run_id] != 1 and (ends[run_id] or result["outcome"] != "internal_error"):
            yield f"{run_id}: {result['outcome']}, and it has ended {ends[run_id]} times"


def _check_shares(evidence: Evidence, execution_id: str) -> Iterator[str]:
    shared: dict[str, Decimal] = dict.fromkeys(evidence.attempts(execution_id), Decimal(0))
    for result in evidence.results(execution_id).values():
        for attempt in result["attempts"]:
            shared[attempt["job_name"]] += round(
                Decimal(str(attempt["billable_seconds"])) * MILLISECONDS
            )
    for name, milliseconds in shared.items():
        billed = evidence.ledger[name]["billed_seconds"] * MILLISECONDS
        if milliseconds != billed:
            yield f"{name}: billed {billed} ms, its runs have {milliseconds} ms"
