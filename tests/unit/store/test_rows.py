"""What is asked of DynamoDB: the conditions that make writes safe to repeat, and numbers as it takes them."""

import json
from decimal import Decimal
from typing import Any

from botocore.stub import ANY, Stubber

from tests.unit.lab_in_memory import NOW, PRICE, make_lab
from tests.unit.stubbed import stubbed_table
from traindyno.core.documents.stored import to_document
from traindyno.core.jobs.attempt import Attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.suite.runs import run_document
from traindyno.store.attempt_rows import AttemptRow, AttemptRows
from traindyno.store.row_values import to_row
from traindyno.store.spending import Spending
from traindyno.store.suite_rows import SuiteRows, planned_price

RUN = make_lab()[1][0]
KEY = {"pk": "job#job-1", "sk": "attempt"}
ROW = AttemptRow(
    job_name="job-1", run=RUN, number=1, is_last=False, token="t", submitted_at=NOW, usd_per_hour=Decimal("1.2")
)


def stored_item() -> dict[str, Any]:
    """Anew each time: the resource turns the answer's values into plain ones where they stand."""
    return {
        "pk": {"S": "job#job-1"},
        "sk": {"S": "attempt"},
        "open": {"S": "open"},
        "execution_id": {"S": RUN.execution_id},
        "run": {"S": json.dumps(run_document(RUN))},
        "number": {"N": "1"},
        "is_last": {"BOOL": False},
        "token": {"S": "t"},
        "submitted_at": {"N": str(NOW)},
        "usd_per_hour": {"N": "1.2"},
        "reserved_usd": {"N": "0"},
    }


def refuse(stubber: Stubber, operation: str = "update_item") -> None:
    stubber.add_client_error(operation, "ConditionalCheckFailedException")


def test_numbers_become_decimals_and_what_is_not_finite_becomes_unknown() -> None:
    row = to_row({"a": 0.1, "b": [1, float("nan")], "c": True, "d": None, "e": "x"})
    assert row == {"a": Decimal("0.1"), "b": [1, None], "c": True, "d": None, "e": "x"}


def test_an_attempt_is_created_once_and_is_found_while_it_is_open() -> None:
    with stubbed_table() as (table, stubber):
        expected = {"TableName": "rows", "Item": ANY, "ConditionExpression": "attribute_not_exists(pk)"}
        stubber.add_response("put_item", {}, expected)
        refuse(stubber, "put_item")
        assert AttemptRows(table).create(ROW)
        assert not AttemptRows(table).create(ROW)


def test_an_attempt_reads_back_as_it_was_written() -> None:
    with stubbed_table() as (table, stubber):
        stubber.add_response(
            "get_item", {"Item": stored_item()}, {"TableName": "rows", "Key": KEY, "ConsistentRead": True}
        )
        stubber.add_response("get_item", {})
        assert AttemptRows(table).read("job-1") == ROW
        assert AttemptRows(table).read("job-1") is None


def test_an_end_is_written_unless_there_is_one_and_answers_with_the_row_as_it_is_now() -> None:
    end = Attempt(number=1, job_name="job-1", outcome=Outcome.COMPLETED, billable_seconds=12.5)
    stored = {
        **stored_item(),
        "token": {"S": "newer"},
        "end": {"M": {"number": {"N": "1"}, "job_name": {"S": "job-1"}, "billable_seconds": {"N": "12.5"}}},
    }
    with stubbed_table() as (table, stubber):
        stubber.add_response(
            "update_item",
            {"Attributes": stored},
            {
                "TableName": "rows",
                "Key": KEY,
                "UpdateExpression": "SET #end = :end",
                "ConditionExpression": "attribute_exists(pk) AND attribute_not_exists(#end)",
                "ExpressionAttributeNames": {"#end": "end"},
                "ExpressionAttributeValues": {":end": to_row(to_document(end))},
                "ReturnValues": "ALL_NEW",
            },
        )
        refuse(stubber)
        row = AttemptRows(table).record_end(end)
        assert row is not None
        assert (row.token, row.end and row.end.billable_seconds) == ("newer", 12.5)
        assert AttemptRows(table).record_end(end) is None


def test_an_attempt_is_handed_over_only_while_its_end_is_unknown() -> None:
    with stubbed_table() as (table, stubber):
        stubber.add_response("update_item", {"Attributes": stored_item()})
        refuse(stubber)
        assert AttemptRows(table).hand_over("job-1", "u")
        assert not AttemptRows(table).hand_over("job-1", "u")


def test_closing_takes_the_attempt_out_of_the_index() -> None:
    with stubbed_table() as (table, stubber):
        stubber.add_response(
            "update_item",
            {},
            {
                "TableName": "rows",
                "Key": KEY,
                "UpdateExpression": "REMOVE #open",
                "ExpressionAttributeNames": {"#open": "open"},
            },
        )
        AttemptRows(table).close("job-1")


def test_open_attempts_are_read_page_by_page() -> None:
    with stubbed_table() as (table, stubber):
        stubber.add_response(
            "query", {"Items": [stored_item()], "LastEvaluatedKey": {"pk": {"S": "x"}, "sk": {"S": "y"}}}
        )
        stubber.add_response("query", {"Items": [stored_item()]})
        assert list(AttemptRows(table).list_open(RUN.execution_id)) == [ROW, ROW]


def test_a_run_gets_its_outcome_once() -> None:
    with stubbed_table() as (table, stubber):
        stubber.add_response(
            "update_item",
            {},
            {
                "TableName": "rows",
                "Key": {"pk": "execution#e", "sk": "run#r"},
                "UpdateExpression": "SET #0 = :0, #1 = :1",
                "ExpressionAttributeNames": {"#0": "outcome", "#1": "seconds"},
                "ExpressionAttributeValues": {":0": "completed", ":1": Decimal("1.5")},
                "ConditionExpression": "attribute_not_exists(outcome)",
            },
        )
        refuse(stubber)
        summary = {"outcome": "completed", "seconds": 1.5}
        assert SuiteRows(table).record_run("e", "r", summary)
        assert not SuiteRows(table).record_run("e", "r", summary)


def test_jobs_of_a_run_are_a_set_so_that_noting_one_twice_is_noting_it_once() -> None:
    with stubbed_table() as (table, stubber):
        key = {"pk": "execution#e", "sk": "run#r"}
        expected = {"TableName": "rows", "Key": key, "ExpressionAttributeValues": {":job": {"job-1"}}}
        stubber.add_response("update_item", {}, {**expected, "UpdateExpression": "ADD jobs :job REMOVE start_at"})
        stubber.add_response("update_item", {}, {**expected, "UpdateExpression": "DELETE jobs :job"})
        SuiteRows(table).note_job("e", "r", "job-1")
        SuiteRows(table).forget_job("e", "r", "job-1")


def test_an_execution_without_a_row_has_nothing_to_stop() -> None:
    with stubbed_table() as (table, stubber):
        refuse(stubber)
        SuiteRows(table).mark_stopping("e")


def test_the_price_is_the_one_that_the_suite_was_planned_with() -> None:
    facts = {"prices": {PRICE.instance_type: to_document(PRICE)}}
    assert planned_price(facts, PRICE.instance_type) == PRICE
    assert planned_price(facts, "ml.p4d.24xlarge") is None


def test_money_is_reserved_only_where_there_is_room_below_the_cap() -> None:
    with stubbed_table() as (table, stubber):
        stubber.add_response(
            "update_item",
            {},
            {
                "TableName": "rows",
                "Key": {"pk": "execution#e", "sk": "suite"},
                "UpdateExpression": "ADD exposed_usd :usd",
                "ConditionExpression": "attribute_not_exists(exposed_usd) OR exposed_usd <= :room",
                # a third of a dollar, rounded up to a millionth; 10 - 0.333334
                "ExpressionAttributeValues": {":usd": Decimal("0.333334"), ":room": Decimal("9.666666")},
            },
        )
        refuse(stubber)
        third = Decimal(1) / 3
        assert Spending(table).reserve("e", third, cap_usd=Decimal(10))
        assert not Spending(table).reserve("e", third, cap_usd=Decimal(10))


def test_what_was_spent_takes_the_place_of_what_was_reserved() -> None:
    with stubbed_table() as (table, stubber):
        values = {":less": Decimal("-0.400000"), ":spent": Decimal("0.200000")}
        stubber.add_response(
            "update_item",
            {},
            {
                "TableName": "rows",
                "Key": {"pk": "execution#e", "sk": "suite"},
                "UpdateExpression": "ADD exposed_usd :less, spent_usd :spent",
                "ExpressionAttributeValues": values,
            },
        )
        Spending(table).settle("e", reserved_usd=Decimal("0.6"), spent_usd=Decimal("0.2"))


def test_executions_of_the_same_work_are_listed_once_each_the_latest_first() -> None:
    with stubbed_table() as (table, stubber):
        stubber.add_response(
            "put_item", {}, {"TableName": "rows", "Item": {"pk": "work#abc", "sk": f"{NOW:.0f}#execution-2"}}
        )
        keys = [{"pk": {"S": "work#abc"}, "sk": {"S": sk}} for sk in ("30#b", "20#a", "10#a")]
        stubber.add_response("query", {"Items": keys})
        suites = SuiteRows(table)
        suites.note_work("abc", "execution-2", NOW)
        assert suites.list_same_work("abc", 3) == ["b", "a"]
