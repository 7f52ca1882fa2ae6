"""Requests for higher quotas, as AWS gets them: looked up first, never sent twice."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.unit.stubbed import stubbed
from traindyno.aws.quota_requests import QuotaRequests
from traindyno.core.planning.quota_increases import NeededIncrease, RequestStatus
from traindyno.core.planning.quotas import QuotaIncrease

CODE = {"ServiceCode": "sagemaker", "QuotaCode": "L-09B4A649"}
HISTORY = "list_requested_service_quota_change_history_by_quota"
INCREASE = QuotaIncrease(name="P4d", code="L-09B4A649", current_value=0, desired_value=16)
NEEDED = NeededIncrease(increase=INCREASE, request=None)


def request(request_id: str, status: str, *, day: int = 1, value: float = 16.0) -> dict[str, Any]:
    return {
        "Id": request_id,
        "Status": status,
        "DesiredValue": value,
        "Created": datetime(2026, 11, day, tzinfo=UTC),
        **CODE,
    }


def look_up(*requests: dict[str, Any]) -> NeededIncrease:
    with stubbed("service-quotas") as (client, stubber):
        stubber.add_response(HISTORY, {"RequestedQuotas": list(requests)}, CODE)
        return QuotaRequests(client).look_up(INCREASE)


def test_no_request_is_found_where_none_was_sent() -> None:
    assert look_up().request is None


def test_the_open_request_counts_before_later_ones_that_are_closed() -> None:
    found = look_up(request("new", "DENIED", day=9), request("open", "CASE_OPENED", day=3)).request
    assert found is not None
    assert (found.request_id, found.status.is_open) == ("open", True)


def test_latest_of_the_closed_requests_counts() -> None:
    found = look_up(request("old", "DENIED", day=3), request("new", "APPROVED", day=9, value=8)).request
    assert found is not None
    assert (found.request_id, found.desired_value) == ("new", 8)


def test_every_page_of_the_history_is_read() -> None:
    with stubbed("service-quotas") as (client, stubber):
        stubber.add_response(HISTORY, {"RequestedQuotas": [request("a", "DENIED")], "NextToken": "more"}, CODE)
        second = {"RequestedQuotas": [request("b", "PENDING")]}
        stubber.add_response(HISTORY, second, {**CODE, "NextToken": "more"})
        found = QuotaRequests(client).look_up(INCREASE).request
    assert found is not None
    assert found.request_id == "b"


def test_a_status_that_nobody_knows_is_an_error_and_not_a_guess() -> None:
    with pytest.raises(ValueError, match="MAYBE"):
        look_up(request("a", "MAYBE"))


def test_sending_asks_for_what_is_needed() -> None:
    with stubbed("service-quotas") as (client, stubber):
        answer = {"RequestedQuota": {**request("sent", "PENDING"), "CaseId": "123"}}
        stubber.add_response("request_service_quota_increase", answer, {**CODE, "DesiredValue": 16.0})
        found, is_sent = QuotaRequests(client).send(NEEDED)
    assert is_sent
    assert found.request is not None
    assert (found.request.status, found.request.case_id) == (RequestStatus.PENDING, "123")


def test_a_request_that_is_open_after_all_is_found_and_not_an_error() -> None:
    with stubbed("service-quotas") as (client, stubber):
        stubber.add_client_error("request_service_quota_increase", "ResourceAlreadyExistsException")
        stubber.add_response(HISTORY, {"RequestedQuotas": [request("other", "PENDING")]}, CODE)
        found, is_sent = QuotaRequests(client).send(NEEDED)
    assert not is_sent
    assert found.request is not None
    assert found.request.request_id == "other"


def test_a_quota_without_a_code_is_not_asked_about() -> None:
    with stubbed("service-quotas") as (client, _):
        found = QuotaRequests(client).look_up(QuotaIncrease(name="P9", code=None, current_value=0, desired_value=2))
    assert found.request is None
