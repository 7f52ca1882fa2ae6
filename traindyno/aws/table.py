"""One DynamoDB table: a condition that doesn't hold is an answer, every other error is raised."""

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code
from traindyno.core.errors import Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table as Boto3Table

Item = Mapping[str, Any]
Write: TypeAlias = "Put | Update | Delete"
CONDITION_REFUSED = "ConditionalCheckFailedException"
TRANSACTION_CANCELED = "TransactionCanceledException"
# The reason of a write that did not cancel the transaction, and of one whose condition doesn't
# hold.
NOT_THE_REASON = "None"
REFUSED = "ConditionalCheckFailed"
# These reasons pass: another write of the same item was under way, or there were too many writes.
PASSING = frozenset({"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"})
# Tries are separated by waits of up to 0.05, 0.1, 0.2, ... 3.2 s: 3 s in all on average.
TRANSACTION_TRIES = 8
FIRST_WAIT_SECONDS = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    item: Item
    condition: str

    def request(self, table_name: str) -> dict[str, Any]:
        """The write as a member of TransactWriteItems."""
        return {
            "Put": {
                "TableName": table_name,
                "Item": dict(self.item),
                "ConditionExpression": self.condition,
            }
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Delete:
    key: Item
    condition: str
    values: Item

    def request(self, table_name: str) -> dict[str, Any]:
        """The write as a member of TransactWriteItems."""
        return {
            "Delete": {
                "TableName": table_name,
                "Key": dict(self.key),
                "ConditionExpression": self.condition,
                "ExpressionAttributeValues": dict(self.values),
            }
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    key: Item
    expression: str
    values: Item
    names: Mapping[str, str] = field(default_factory=dict)
    condition: str | None = None

    def request(self, table_name: str) -> dict[str, Any]:
        """The write as a member of TransactWriteItems."""
        return {"Update": {"TableName": table_name, **self.arguments()}}

    def arguments(self) -> dict[str, Any]:
        """The arguments of UpdateItem, without the table."""
        given = {
            "ExpressionAttributeValues": self.values,
            "ExpressionAttributeNames": self.names,
            "ConditionExpression": self.condition,
        }
        return {
            "Key": dict(self.key),
            "UpdateExpression": self.expression,
            **{name: value for name, value in given.items() if value},
        }


class Table:
    """The lab's table. Values are as in boto3's resource: text, Decimal, bool, sets, lists and
    maps.

    Reads are consistent.
    """

    def __init__(self, table: "Boto3Table", *, sleep: Callable[[float], None] = time.sleep) -> None:
        self._table = table
        self._sleep = sleep

    def get(self, key: Item) -> Item | None:
        return self._table.get_item(Key=dict(key), ConsistentRead=True).get("Item")

    def put(self, item: Item, *, condition: str | None = None) -> bool:
        """Replace the whole item; False if the condition doesn't hold, and then nothing is
        written.
        """
        arguments: dict[str, Any] = {"Item": dict(item)}
        if condition:
            arguments["ConditionExpression"] = condition
        try:
            self._table.put_item(**arguments)
        except ClientError as error:
            if error_code(error) != CONDITION_REFUSED:
                raise
            return False
        return True

    def update(
        self,
        key: Item,
        expression: str,
        *,
        values: Item | None = None,
        names: Mapping[str, str] | None = None,
        condition: str | None = None,
    ) -> Item | None:
        """The item as it is afterwards; None if the condition doesn't hold, and then nothing is
        written.
        """
        update = Update(
            key=key,
            expression=expression,
            values=values or {},
            names=names or {},
            condition=condition,
        )
        try:
            updated = self._table.update_item(ReturnValues="ALL_NEW", **update.arguments())
        except ClientError as error:
            if error_code(error) != CONDITION_REFUSED:
                raise
            return None
        return updated["Attributes"]

    def delete(self, key: Item) -> None:
        self._table.delete_item(Key=dict(key))

    def write_all(self, writes: Sequence[Write]) -> tuple[int, ...]:
        """Write all, or nothing: then return the positions of the writes whose condition doesn't
        hold.

        Raises Throttled if other writes of the same items are in the way for several seconds.
        """
        members: Any = [write.request(self._table.name) for write in writes]
        for number in range(TRANSACTION_TRIES):
            if number:
                self._sleep(random.uniform(0, FIRST_WAIT_SECONDS * 2 ** (number - 1)))
            try:
                self._table.meta.client.transact_write_items(TransactItems=members)
            except ClientError as error:
                refused = _refused(error)
                if refused:
                    return refused
            else:
                return ()
        raise Throttled(
            f"{TRANSACTION_TRIES} transactions of {len(writes)} writes each were canceled by other "
            "writes"
        )

    def query(
        self,
        condition: str,
        *,
        values: Item,
        names: Mapping[str, str] | None = None,
        index: str | None = None,
        latest_first: bool = False,
    ) -> Iterator[Item]:
        """The items in the order of the sort key, read page by page.

        A query of an index may miss what was written a moment ago.
        """
        arguments: dict[str, Any] = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not latest_first,
            **({"ExpressionAttributeNames": names} if names else {}),
            **({"IndexName": index} if index else {"ConsistentRead": True}),
        }
        return _pages(self._table.query, arguments)


def _pages(read: Callable[..., Mapping[str, Any]], arguments: dict[str, Any]) -> Iterator[Item]:
    while True:
        page = read(**arguments)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def _refused(error: ClientError) -> tuple[int, ...]:
    """Positions of writes whose condition doesn't hold; none if a repetition may succeed.

    Raises every other error.
    """
    reasons: Sequence[Mapping[str, str]] = error.response.get("CancellationReasons", ())  # type: ignore[assignment]
    codes = [reason.get("Code", NOT_THE_REASON) for reason in reasons]
    refused = tuple(number for number, code in enumerate(codes) if code == REFUSED)
    passes = {code for code in codes if code != NOT_THE_REASON} <= PASSING
    if error_code(error) != TRANSACTION_CANCELED or not codes or not (refused or passes):
        raise error
    return refused
