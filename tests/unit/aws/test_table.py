"""A transaction: refused, repeated while other writes are in the way, and in the end throttled."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from tests.unit.stubbed import stubbed_table
from traindyno.aws.table import TRANSACTION_TRIES, Delete, Put, Table, Update, Write
from traindyno.core.errors import Throttled

KEY = {"pk": "a", "sk": "b"}
UPDATE = Update(
    key=KEY, expression="ADD n :n", values={":n": 2}, names={"#n": "n"}, condition="#n > :n"
)
WRITES: list[Write] = [
    Put(item={**KEY, "n": 1}, condition="attribute_not_exists(pk)"),
    Delete(key=KEY, condition="n = :n", values={":n": 1}),
    UPDATE,
]
MEMBERS = [
    {
        "Put": {
            "TableName": "rows",
            "Item": {**KEY, "n": 1},
            "ConditionExpression": "attribute_not_exists(pk)",
        }
    },
    {
        "Delete": {
            "TableName": "rows",
            "Key": KEY,
            "ConditionExpression": "n = :n",
            "ExpressionAttributeValues": {":n": 1},
        }
    },
    {
        "Update": {
            "TableName": "rows",
            "Key": KEY,
            "UpdateExpression": "ADD n :n",
            "ExpressionAttributeValues": {":n": 2},
            "ExpressionAttributeNames": {"#n": "n"},
            "ConditionExpression": "#n > :n",
        }
    },
]


@pytest.fixture
def stub() -> Iterator[tuple[Table, Stubber, list[float]]]:
    waits: list[float] = []
    with stubbed_table() as (table, stubber):
        yield Table(table, sleep=waits.append), stubber, waits


def cancel(stubber: Stubber, *codes: str) -> None:
    reasons: Any = {"CancellationReasons": [{"Code": code} for code in codes]}
    stubber.add_client_error(
        "transact_write_items", "TransactionCanceledException", "canceled", modeled_fields=reasons
    )


def test_the_request_holds_each_write_with_its_condition(
    stub: tuple[Table, Stubber, list[float]],
) -> None:
    table, stubber, _ = stub
    stubber.add_response("transact_write_items", {}, {"TransactItems": MEMBERS})
    assert table.write_all(WRITES) == ()


def test_a_false_condition_is_an_answer(
    stub: tuple[Table, Stubber, list[float]],
) -> None:
    table, stubber, waits = stub
    cancel(stubber, "None", "ConditionalCheckFailed", "ConditionalCheckFailed")
    assert table.write_all(WRITES) == (1, 2)
    assert waits == []


def test_a_conflict_is_tried_again_with_growing_waits(
    stub: tuple[Table, Stubber, list[float]],
) -> None:
    table, stubber, waits = stub
    for _ in range(TRANSACTION_TRIES - 1):
        cancel(stubber, "TransactionConflict", "None", "ThrottlingError")
    stubber.add_response("transact_write_items", {})
    assert table.write_all(WRITES) == ()
    assert len(waits) == TRANSACTION_TRIES - 1
    assert all(0 <= wait <= 0.05 * 2**number for number, wait in enumerate(waits))


def test_conflicts_without_end_are_throttling(stub: tuple[Table, Stubber, list[float]]) -> None:
    table, stubber, _ = stub
    for _ in range(TRANSACTION_TRIES):
        cancel(stubber, "TransactionConflict", "None", "None")
    with pytest.raises(Throttled, match="3 writes"):
        table.write_all(WRITES)


def test_any_other_reason_is_raised(stub: tuple[Table, Stubber, list[float]]) -> None:
    table, stubber, _ = stub
    cancel(stubber, "ValidationError", "TransactionConflict", "None")
    with pytest.raises(ClientError, match="canceled"):
        table.write_all(WRITES)
    stubber.add_client_error("transact_write_items", "ResourceNotFoundException", "no such table")
    with pytest.raises(ClientError, match="no such table"):
        table.write_all(WRITES)
