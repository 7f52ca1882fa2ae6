"""The check of a deployment asks with a role that is seconds old."""

import pytest
from botocore.exceptions import ClientError

from traindyno.aws.new_role import as_new_role


class Service:
    """Answers after ``failures`` errors of one code."""

    def __init__(self, failures: int, code: str = "AccessDeniedException") -> None:
        self.failures = failures
        self.code = code

    def ask(self) -> str:
        if self.failures:
            self.failures -= 1
            raise ClientError({"Error": {"Code": self.code, "Message": "no"}}, "ListServiceQuotas")
        return "answer"


@pytest.mark.parametrize("code", ["AccessDenied", "AccessDeniedException"])
def test_a_role_new_to_iam_is_tried_again(code: str) -> None:
    slept: list[float] = []
    assert as_new_role(Service(3, code).ask, sleep=slept.append) == "answer"
    assert 0 < sum(slept) < 60


def test_a_denied_role_is_tried_for_a_minute_and_then_reported() -> None:
    slept: list[float] = []
    with pytest.raises(ClientError, match="AccessDenied"):
        as_new_role(Service(1000).ask, sleep=slept.append)
    assert sum(slept) == 60


def test_another_error_is_not_repeated() -> None:
    slept: list[float] = []
    with pytest.raises(ClientError, match="IllegalArgument"):
        as_new_role(Service(1, "IllegalArgumentException").ask, sleep=slept.append)
    assert slept == []
