"""The table's rows of executions and runs: what lists and progress displays read."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from boto3.dynamodb.conditions import Key
from botocore.exceptions import ClientError

from traindyno.aws.client_errors import is_refused_condition
from traindyno.core.costs.prices import Price
from traindyno.core.documents.stored import from_document
from traindyno.store.row_values import to_row

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

SUITE = "suite"


class SuiteRows:
    def __init__(self, table: "Table") -> None:
        self._table = table

    def create(self, execution_id: str, facts: Mapping[str, Any]) -> None:
        """Safe to repeat: what the execution has become since stays."""
        try:
            self._table.put_item(
                Item={**_key(execution_id, SUITE), **to_row(facts)}, ConditionExpression="attribute_not_exists(pk)"
            )
        except ClientError as error:
            if not is_refused_condition(error):
                raise

    def note_work(self, work_id: str, execution_id: str, started_at: float) -> None:
        """Where later plans of the same work look for what its runs took."""
        when = f"{started_at:.0f}"
        self._table.put_item(Item={"pk": f"work#{work_id}", "sk": f"{when}#{execution_id}"})

    def list_same_work(self, work_id: str, limit: int) -> list[str]:
        """Executions of it, the latest first."""
        page = self._table.query(
            KeyConditionExpression=Key("pk").eq(f"work#{work_id}"), ScanIndexForward=False, Limit=limit
        )
        # An execution that was taken in twice, because the first answer was lost, is there twice.
        return list(dict.fromkeys(str(item["sk"]).partition("#")[2] for item in page["Items"]))

    def read(self, execution_id: str) -> dict[str, Any] | None:
        return self._read(_key(execution_id, SUITE))

    def update(self, execution_id: str, facts: Mapping[str, Any]) -> None:
        self._set(_key(execution_id, SUITE), facts)

    def mark_stopping(self, execution_id: str) -> None:
        """From now on SubmitRun starts no job of this execution."""
        try:
            self._set(_key(execution_id, SUITE), {"stopping": True}, condition="attribute_exists(pk)")
        except ClientError as error:
            if not is_refused_condition(error):
                raise  # an execution without a row was refused before it could start anything

    def is_stopping(self, execution_id: str) -> bool:
        return bool((self.read(execution_id) or {}).get("stopping"))

    def note_job(self, execution_id: str, run_id: str, job_name: str) -> None:
        self._table.update_item(
            Key=_key(execution_id, f"run#{run_id}"),
            UpdateExpression="ADD jobs :job REMOVE start_at",
            ExpressionAttributeValues={":job": {job_name}},
        )

    def note_turn(self, execution_id: str, run_id: str, start_at: float) -> None:
        """When the run may start its next job; noting that job takes it back."""
        self._set(_key(execution_id, f"run#{run_id}"), {"start_at": start_at})

    def forget_job(self, execution_id: str, run_id: str, job_name: str) -> None:
        self._table.update_item(
            Key=_key(execution_id, f"run#{run_id}"),
            UpdateExpression="DELETE jobs :job",
            ExpressionAttributeValues={":job": {job_name}},
        )

    def read_run(self, execution_id: str, run_id: str) -> dict[str, Any]:
        """``jobs`` are the run's training jobs so far; ``outcome`` is there once the run is over."""
        return self._read(_key(execution_id, f"run#{run_id}")) or {}

    def record_run(self, execution_id: str, run_id: str, summary: Mapping[str, Any]) -> bool:
        """Exactly once: False if the run has its outcome already."""
        try:
            self._set(_key(execution_id, f"run#{run_id}"), summary, condition="attribute_not_exists(outcome)")
        except ClientError as error:
            if not is_refused_condition(error):
                raise
            return False
        return True

    def list_runs(self, execution_id: str) -> Iterator[dict[str, Any]]:
        condition = Key("pk").eq(f"execution#{execution_id}") & Key("sk").begins_with("run#")
        arguments: dict[str, Any] = {"KeyConditionExpression": condition, "ConsistentRead": True}
        while True:
            page = self._table.query(**arguments)
            yield from (dict(item) for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    def _read(self, key: Mapping[str, str]) -> dict[str, Any] | None:
        item = self._table.get_item(Key=key, ConsistentRead=True).get("Item")
        return dict(item) if item else None

    def _set(self, key: Mapping[str, str], facts: Mapping[str, Any], condition: str | None = None) -> None:
        row = to_row(facts)
        names = {f"#{index}": name for index, name in enumerate(row)}
        arguments: dict[str, Any] = {
            "UpdateExpression": "SET " + ", ".join(f"{alias} = :{alias[1:]}" for alias in names),
            "ExpressionAttributeNames": names,
            "ExpressionAttributeValues": {f":{index}": value for index, value in enumerate(row.values())},
        }
        if condition:
            arguments["ConditionExpression"] = condition
        self._table.update_item(Key=key, **arguments)


def _key(execution_id: str, row: str) -> dict[str, str]:
    return {"pk": f"execution#{execution_id}", "sk": row}


def planned_price(facts: Mapping[str, Any], instance_type: str) -> Price | None:
    """``facts``: of the suite's row, which holds the prices that it was planned with."""
    prices = facts.get("prices", {})
    return from_document(prices[instance_type], Price) if instance_type in prices else None
