"""Recomputes everything about the executions of a local cloud from its ledger, its table and its
bucket.

It reads raw rows and documents, and shares no code with the lab that wrote them. ``check`` returns
what is wrong.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_HALF_UP, Decimal
from typing import Any

from boto3.dynamodb.types import TypeDeserializer

from tests.local.chaos_lab import ChaosLab

Row = Mapping[str, Any]
SECONDS_PER_HOUR = 3600
MICRO_USD = Decimal("0.000001")
CENT = Decimal("0.01")
STATUS_OF_OUTCOME = {"completed": "Completed", "out_of_memory": "Failed"}
# The cap refused the run's next job, or the sweep stopped its last one: either may be the first.
COST_STOPPED = "cost_stopped"


@dataclass(frozen=True, slots=True)
class Evidence:
    """Ledger rows by job name, table rows by key, and documents of the bucket by key."""

    ledger: Mapping[str, Row]
    table: Mapping[tuple[str, str], Row]
    documents: Mapping[str, Any]

    def attempts(self, execution_id: str) -> dict[str, Row]:
        return {
            pk.removeprefix("job#"): row
            for (pk, sk), row in self.table.items()
            if sk == "attempt" and row["execution_id"] == execution_id
        }

    def runs(self, execution_id: str) -> dict[str, Row]:
        key = f"execution#{execution_id}"
        return {
            sk.removeprefix("run#"): row
            for (pk, sk), row in self.table.items()
            if pk == key and sk.startswith("run#")
        }

    def suite(self, execution_id: str) -> Row:
        return self.table[f"execution#{execution_id}", "suite"]

    def results(self, execution_id: str) -> dict[str, Any]:
        prefix = results_prefix(execution_id)
        return {
            key.removeprefix(prefix).removesuffix(".json"): document
            for key, document in self.documents.items()
            if key.startswith(prefix)
        }


def gather(chaos: ChaosLab, *executions: str) -> Evidence:
    """Reads the evidence of a lab, with the results of these executions."""
    deployment = chaos.deployment()
    return Evidence(
        ledger={
            name: row
            for name, row in chaos.ledger().items()
            if name.startswith(f"{deployment.lab}--")
        },
        table={(row["pk"], row["sk"]): row for row in _scan(chaos, deployment.table)},
        documents=dict(_read_results(chaos, deployment.bucket, executions)),
    )


def check_finished(evidence: Evidence, execution_id: str, receipt: Row) -> list[str]:
    """What is wrong with an execution that succeeded: each run, job, second and cent must count
    once in both books.
    """
    outcomes = check_outcomes(evidence, execution_id, {*STATUS_OF_OUTCOME, COST_STOPPED})
    problems = [*outcomes, *_check_jobs(evidence, execution_id)]
    return [*problems, *check_paid(evidence, execution_id, receipt)]


def check_paid(evidence: Evidence, execution_id: str, receipt: Row) -> list[str]:
    """What is wrong with the money of an execution, however it ended."""
    return list(_check_money(evidence, execution_id, receipt))


def check_ended(evidence: Evidence, execution_id: str) -> list[str]:
    """What is wrong with an execution that was stopped or failed: none of its jobs may run or
    wait.
    """
    problems = []
    for name, attempt in evidence.attempts(execution_id).items():
        if "open" in attempt:
            problems.append(f"{name}: its attempt is still open")
        if name in evidence.ledger and not evidence.ledger[name]["has_ended"]:
            problems.append(f"{name}: still runs")
    return problems


def find_strays(evidence: Evidence) -> list[str]:
    """The jobs that no attempt of the table names."""
    named = {pk.removeprefix("job#") for pk, sk in evidence.table if sk == "attempt"}
    return sorted(evidence.ledger.keys() - named)


def check_outcomes(
    evidence: Evidence, execution_id: str, expected: Collection[str]
) -> Iterator[str]:
    """Each planned run has one row and one result, with the same outcome."""
    runs = evidence.runs(execution_id)
    results = evidence.results(execution_id)
    wanted = int(evidence.suite(execution_id)["run_count"])
    if len(runs) != wanted or runs.keys() != results.keys():
        yield f"{wanted} runs were planned, {len(runs)} have rows and {len(results)} have results"
    for run_id, row in runs.items():
        result = results.get(run_id, {})
        outcome = _outcome(row)
        message = result.get("message")
        if outcome not in expected or outcome != result.get("outcome"):
            yield (
                f"{run_id}: outcome {outcome} in its row, {result.get('outcome')} in its result: "
                f"{message}"
            )


def _check_jobs(evidence: Evidence, execution_id: str) -> Iterator[str]:
    attempts = evidence.attempts(execution_id)
    runs = evidence.runs(execution_id)
    by_run: dict[str, list[str]] = {}
    for name, attempt in attempts.items():
        by_run.setdefault(owner_of(attempt)[1]["run_id"], []).append(name)
        if name not in evidence.ledger:
            yield f"{name}: an attempt without a job"
    for run_id, row in runs.items():
        names = sorted(by_run.get(run_id, []), key=lambda name: int(attempts[name]["number"]))
        if set(names) != set(row.get("jobs", ())):
            yield f"{run_id}: jobs {sorted(row.get('jobs', ()))} in its row, attempts {names}"
        statuses = [evidence.ledger[name]["status"] for name in names if name in evidence.ledger]
        if {*statuses[:-1]} - {"Failed"} or not _is_end_of(_outcome(row), statuses[-1:]):
            yield f"{run_id}: {_outcome(row)}, and its jobs ended as {statuses}"


def _is_end_of(outcome: str, last: Sequence[str]) -> bool:
    if outcome == COST_STOPPED:
        return {*last} <= {"Failed", "Stopped"}
    return list(last) == [STATUS_OF_OUTCOME.get(outcome)]


def _check_money(evidence: Evidence, execution_id: str, receipt: Row) -> Iterator[str]:
    prices = evidence.suite(execution_id)["prices"]
    lines: dict[str, Decimal] = {}
    for line in receipt["lines"]:
        lines[line["job_name"]] = lines.get(line["job_name"], Decimal(0)) + Decimal(
            str(line["billable_seconds"] or 0)
        )
    attempts = evidence.attempts(execution_id)
    if lines.keys() != attempts.keys():
        yield f"receipt and attempts differ by {sorted(lines.keys() ^ attempts.keys())}"
    costs = []
    for name in attempts.keys() & evidence.ledger.keys():
        job = evidence.ledger[name]
        stored = (attempts[name].get("end") or {}).get("billable_seconds") or 0
        if Decimal(str(stored)) != job["billed_seconds"]:
            yield (
                f"{name}: billed {job['billed_seconds']} s by the ledger, {stored} s in its attempt"
            )
        if lines.get(name, Decimal(0)) != job["billed_seconds"]:
            yield f"{name}: billed {job['billed_seconds']} s by the ledger, not so in the receipt"
        price = Decimal(str(prices[job["instance_type"]]["usd_per_hour"]))
        per_second = job["instance_count"] * price / SECONDS_PER_HOUR
        costs.append(job["billed_seconds"] * per_second)
    total = sum(costs, Decimal(0)).quantize(CENT, ROUND_HALF_UP)
    if abs(Decimal(str(receipt["total_usd"])) - total) > 0:
        yield f"the receipt says {receipt['total_usd']}, the ledger {total}"
    spent = sum((cost.quantize(MICRO_USD, ROUND_CEILING) for cost in costs), Decimal(0))
    suite = evidence.suite(execution_id)
    if total > suite["max_usd"]:
        yield f"the ledger says {total}, above the cap of {suite['max_usd']}"
    is_apart = suite["exposed_usd"] != suite["spent_usd"]
    if abs(suite["spent_usd"] - spent) > MICRO_USD * len(costs) or is_apart:
        yield (
            f"the row says spent {suite['spent_usd']} and exposed {suite['exposed_usd']}, the "
            f"ledger {spent}"
        )


def _outcome(run: Row) -> str:
    return str((run.get("summary") or {}).get("outcome"))


def owner_of(attempt: Row) -> tuple[str, dict[str, Any]]:
    """The kind of an attempt's owner (``run``, ``job`` or ``preparation``) and its document."""
    ((kind, document),) = json.loads(attempt["owner"]).items()
    return kind, document


def _scan(chaos: ChaosLab, table: str) -> Iterator[dict[str, Any]]:
    read = TypeDeserializer().deserialize
    for page in (
        chaos.client("dynamodb")
        .get_paginator("scan")
        .paginate(TableName=table, ConsistentRead=True)
    ):
        for item in page["Items"]:
            yield {name: read(value) for name, value in item.items()}


def _read_results(
    chaos: ChaosLab, bucket: str, executions: Sequence[str]
) -> Iterator[tuple[str, Any]]:
    s3 = chaos.client("s3")
    for execution_id in executions:
        prefix = results_prefix(execution_id)
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix):
            for item in page.get("Contents", ()):
                yield item["Key"], json.load(s3.get_object(Bucket=bucket, Key=item["Key"])["Body"])


def results_prefix(execution_id: str) -> str:
    return f"suites/{execution_id}/results/"
