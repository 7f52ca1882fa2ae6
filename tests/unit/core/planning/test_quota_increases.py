"""Which increases a suite needs, and whether asking (again) is due."""

import pytest

from traindyno.core.planning.quota_increases import NeededIncrease, RequestedIncrease, RequestStatus, needed_increases
from traindyno.core.planning.quotas import QuotaIncrease
from traindyno.core.planning.refusals import Refusal

INCREASE = QuotaIncrease(name="P4d", code="L-09B4A649", current_value=0, desired_value=16)


def refusal(name: str, desired: int) -> Refusal:
    increase = QuotaIncrease(name=name, code=None, current_value=0, desired_value=desired)
    return Refusal(reason="too few", increase=increase)


def needed(status: RequestStatus | None, desired: int = 16) -> NeededIncrease:
    if status is None:
        return NeededIncrease(increase=INCREASE, request=None)
    request = RequestedIncrease(request_id="r", desired_value=desired, status=status, requested_at=0.0, case_id=None)
    return NeededIncrease(increase=INCREASE, request=request)


def test_one_increase_for_each_quota_the_largest_that_is_needed() -> None:
    found = needed_increases(
        [refusal("a", 4), refusal("b", 2), refusal("a", 16), refusal("a", 8), Refusal(reason="no price")]
    )
    assert [(each.name, each.desired_value) for each in found] == [("a", 16), ("b", 2)]


@pytest.mark.parametrize(
    ("status", "is_due"),
    [
        (None, True),
        (RequestStatus.PENDING, False),
        (RequestStatus.CASE_OPENED, False),
        (RequestStatus.APPROVED, False),
        (RequestStatus.DENIED, True),
        (RequestStatus.NOT_APPROVED, True),
        (RequestStatus.CASE_CLOSED, True),
        (RequestStatus.INVALID_REQUEST, True),
    ],
)
def test_nothing_is_sent_while_a_request_is_open_or_enough_is_granted(
    status: RequestStatus | None, is_due: bool
) -> None:
    assert needed(status).is_to_send is is_due


def test_an_approval_of_less_does_not_stand_in_the_way() -> None:
    assert needed(RequestStatus.APPROVED, desired=8).is_to_send


def test_an_open_request_for_less_is_changed_in_its_case_and_not_sent_again() -> None:
    found = needed(RequestStatus.PENDING, desired=8)
    assert not found.is_to_send
    assert found.next_step == "the open request asks for 8 only: ask for 16 in its support case"


def test_a_quota_without_a_known_code_is_for_the_console() -> None:
    increase = QuotaIncrease(name="P9", code=None, current_value=0, desired_value=2)
    found = NeededIncrease(increase=increase, request=None)
    assert not found.is_to_send
    assert "the value 2 in the Service Quotas console" in found.next_step
