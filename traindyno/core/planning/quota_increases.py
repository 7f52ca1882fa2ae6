"""The quota increases that a suite needs: the value needed, the value requested, and AWS's answer."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from traindyno.core.planning.quotas import QuotaIncrease
from traindyno.core.planning.refusals import Refusal


class RequestStatus(StrEnum):
    PENDING = "PENDING"
    CASE_OPENED = "CASE_OPENED"
    APPROVED = "APPROVED"
    DENIED = "DENIED"
    CASE_CLOSED = "CASE_CLOSED"
    NOT_APPROVED = "NOT_APPROVED"
    INVALID_REQUEST = "INVALID_REQUEST"

    @property
    def is_open(self) -> bool:
        match self:
            case RequestStatus.PENDING | RequestStatus.CASE_OPENED:
                return True
            case (
                RequestStatus.APPROVED
                | RequestStatus.DENIED
                | RequestStatus.CASE_CLOSED
                | RequestStatus.NOT_APPROVED
                | RequestStatus.INVALID_REQUEST
            ):
                return False


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestedIncrease:
    """A request that AWS has received. ``requested_at``: epoch seconds; ``case_id``: its support case, if any."""

    request_id: str
    desired_value: int
    status: RequestStatus
    requested_at: float
    case_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class NeededIncrease:
    """``request`` is the open request for this quota, otherwise the latest; None if there was none."""

    increase: QuotaIncrease
    request: RequestedIncrease | None

    @property
    def is_to_send(self) -> bool:
        """False while a request is open, and if enough was approved but has not taken effect."""
        if self.increase.code is None:
            return False
        if self.request is None:
            return True
        is_granted = self.request.status is RequestStatus.APPROVED
        return not self.request.status.is_open and not (is_granted and self._is_enough)

    @property
    def _is_enough(self) -> bool:
        return self.request is not None and self.request.desired_value >= self.increase.desired_value

    @property
    def next_step(self) -> str:
        """What the user has to do, or to wait for."""
        if self.increase.code is None:
            value = self.increase.desired_value
            return f"request the value {value} in the Service Quotas console; the quota's code is unknown"
        if self.is_to_send:
            return "send it: traindyno quotas request"
        if not self._is_enough:
            asked = self.request.desired_value if self.request else 0
            return f"the open request asks for {asked} only: ask for {self.increase.desired_value} in its support case"
        return "wait for AWS"


def needed_increases(refusals: Iterable[Refusal]) -> tuple[QuotaIncrease, ...]:
    """One increase for each quota: the largest that a run needs."""
    needed: dict[str, QuotaIncrease] = {}
    for increase in (refusal.increase for refusal in refusals if refusal.increase):
        known = needed.get(increase.name, increase)
        needed[increase.name] = replace(known, desired_value=max(known.desired_value, increase.desired_value))
    return tuple(needed.values())
