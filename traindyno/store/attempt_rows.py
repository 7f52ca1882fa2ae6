"""The table's rows of attempts: which training job answers which waiting task, and how the job ended."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import is_refused_condition
from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.lab_names import OPEN_ATTEMPTS_INDEX
from traindyno.core.suite.runs import parse_run, run_document
from traindyno.core.suite.suite import Run
from traindyno.store.row_values import to_row

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """``end`` is None until the job's end was described; ``is_open`` until the waiting task has its answer.

    ``is_last``: the suite allows no further attempt. ``stopped_for``: why the lab asked the job to stop, if it did.
    ``usd_per_hour`` is of one instance, as the suite was planned with. ``reserved_usd`` is what the job may cost at
    most, held back from the execution's cap until it has ended.

    Of a job that may run on one of several types, ``usd_by_type`` has the price of each, and ``usd_per_hour`` is the
    dearest. ``placed_on``: the type on which an earlier attempt has worked, which this one keeps to.
    """

    job_name: str
    run: Run
    number: int
    is_last: bool
    token: str
    submitted_at: float
    usd_per_hour: Decimal
    reserved_usd: Decimal = Decimal(0)
    usd_by_type: Mapping[str, Decimal] = field(default_factory=dict)
    placed_on: str | None = None
    is_open: bool = True
    stopped_for: Outcome | None = None
    end: Attempt | None = None


class AttemptRows:
    def __init__(self, table: "Table") -> None:
        self._table = table

    def create(self, row: AttemptRow) -> bool:
        """False if the attempt is there already."""
        item = {
            **_key(row.job_name),
            "open": OPEN,
            "execution_id": row.run.execution_id,
            "run": json.dumps(run_document(row.run)),
            "number": row.number,
            "is_last": row.is_last,
            "token": row.token,
            "submitted_at": to_row(row.submitted_at),
            "usd_per_hour": row.usd_per_hour,
            "reserved_usd": row.reserved_usd,
            **({"usd_by_type": dict(row.usd_by_type)} if row.usd_by_type else {}),
            **({"placed_on": row.placed_on} if row.placed_on else {}),
        }
        try:
            self._table.put_item(Item=item, ConditionExpression="attribute_not_exists(pk)")
        except ClientError as error:
            if not is_refused_condition(error):
                raise
            return False
        return True

    def read(self, job_name: str) -> AttemptRow | None:
        item = self._table.get_item(Key=_key(job_name), ConsistentRead=True).get("Item")
        return _read(item) if item else None

    def hand_over(self, job_name: str, token: str) -> bool:
        """Another task now waits for this attempt; False if its end is known already."""
        return bool(self._update(job_name, "SET #token = :token", {":token": token}, {"#token": "token"}))

    def discard(self, job_name: str) -> None:
        """The job was refused, so there is no such attempt."""
        self._table.delete_item(Key=_key(job_name))

    def note_stop(self, job_name: str, outcome: Outcome) -> bool:
        """The lab is about to stop the job, and why; False if it has ended already."""
        return bool(self._update(job_name, "SET stopped_for = :outcome", {":outcome": outcome.value}))

    def hold(self, job_name: str, reserved_usd: Decimal) -> bool:
        """What is held back for the job from now on; False if it has ended already."""
        return bool(self._update(job_name, "SET reserved_usd = :usd", {":usd": reserved_usd}))

    def record_end(self, end: Attempt) -> AttemptRow | None:
        """The row as it is now; None if another delivery of the same event came first."""
        return self._update(end.job_name, "SET #end = :end", {":end": to_row(to_document(end))})

    def close(self, job_name: str) -> None:
        """The waiting task has its answer, or nobody waits any more."""
        self._table.update_item(
            Key=_key(job_name), UpdateExpression="REMOVE #open", ExpressionAttributeNames={"#open": "open"}
        )

    def list_open(self, execution_id: str | None = None) -> Iterator[AttemptRow]:
        condition, values = "#open = :open", {":open": OPEN}
        if execution_id is not None:
            condition, values = f"{condition} AND execution_id = :id", {**values, ":id": execution_id}
        arguments: dict[str, Any] = {
            "IndexName": OPEN_ATTEMPTS_INDEX,
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": {"#open": "open"},
            "ExpressionAttributeValues": values,
        }
        while True:
            page = self._table.query(**arguments)
            yield from map(_read, page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _update(
        self, job_name: str, expression: str, values: Mapping[str, Any], names: Mapping[str, str] | None = None
    ) -> AttemptRow | None:
        """None if there is no such attempt, or its end is known."""
        try:
            updated = self._table.update_item(
                Key=_key(job_name),
                UpdateExpression=expression,
                ConditionExpression="attribute_exists(pk) AND attribute_not_exists(#end)",
                ExpressionAttributeNames={"#end": "end", **(names or {})},
                ExpressionAttributeValues=values,
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if not is_refused_condition(error):
                raise
            return None
        return _read(updated["Attributes"])


def _key(job_name: str) -> dict[str, str]:
    return {"pk": f"job#{job_name}", "sk": "attempt"}


def _read(item: Mapping[str, Any]) -> AttemptRow:
    return AttemptRow(
        job_name=item["pk"].removeprefix("job#"),
        run=parse_run(json.loads(item["run"])),
        number=int(item["number"]),
        is_last=item["is_last"],
        token=item["token"],
        submitted_at=float(item["submitted_at"]),
        usd_per_hour=item["usd_per_hour"],
        reserved_usd=item["reserved_usd"],
        usd_by_type=item.get("usd_by_type", {}),
        placed_on=item.get("placed_on"),
        is_open="open" in item,
        stopped_for=Outcome(item["stopped_for"]) if "stopped_for" in item else None,
        end=from_document(item["end"], Attempt) if "end" in item else None,
    )
