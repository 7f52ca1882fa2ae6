"""One DynamoDB table: a condition that doesn't hold is an answer, every other error is raised."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import error_code

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table as Boto3Table

Item = Mapping[str, Any]
CONDITION_REFUSED = "ConditionalCheckFailedException"


class Table:
    """Values are those of boto3's resource: text, Decimal, bool, sets, lists and maps. Reads are consistent."""

    def __init__(self, table: "Boto3Table") -> None:
        self._table = table

    def get(self, key: Item) -> Item | None:
        return self._table.get_item(Key=dict(key), ConsistentRead=True).get("Item")

    def put(self, item: Item, *, condition: str | None = None) -> bool:
        """Replace the whole item; False if the condition doesn't hold, and then nothing is written."""
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
        """The item as it is afterwards; None if the condition doesn't hold, and then nothing is written."""
        given = {
            "ExpressionAttributeValues": values,
            "ExpressionAttributeNames": names,
            "ConditionExpression": condition,
        }
        arguments: dict[str, Any] = {name: value for name, value in given.items() if value}
        try:
            updated = self._table.update_item(
                Key=dict(key), UpdateExpression=expression, ReturnValues="ALL_NEW", **arguments
            )
        except ClientError as error:
            if error_code(error) != CONDITION_REFUSED:
                raise
            return None
        return updated["Attributes"]

    def delete(self, key: Item) -> None:
        self._table.delete_item(Key=dict(key))

    def query(
        self,
        condition: str,
        *,
        values: Item,
        names: Mapping[str, str] | None = None,
        index: str | None = None,
        latest_first: bool = False,
    ) -> Iterator[Item]:
        """In the order of the sort key, page by page. A query of an index may miss what was written a moment ago."""
        arguments: dict[str, Any] = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not latest_first,
            **({"ExpressionAttributeNames": names} if names else {}),
            **({"IndexName": index} if index else {"ConsistentRead": True}),
        }
        while True:
            page = self._table.query(**arguments)
            yield from page["Items"]
            if "LastEvaluatedKey" not in page:
                return
            arguments["ExclusiveStartKey"] = page["LastEvaluatedKey"]
