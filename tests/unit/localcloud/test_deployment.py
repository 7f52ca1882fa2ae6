"""What a local cloud has lost of its last deployment, by the stacks and the resources that MiniStack lists."""

from collections.abc import Iterator

import pytest

from localcloud.deployed_resources import DeployedResources
from localcloud.deployment import find_lost
from localcloud.home import Deployed


class ListedResources(DeployedResources):
    """MiniStack's answers: the resources that are missing, by complete stack."""

    def __init__(self, missing: dict[str, list[str]]) -> None:
        self._missing = missing

    def complete_stacks(self) -> set[str]:
        return set(self._missing)

    def missing(self, stack: str) -> Iterator[str]:
        return iter(self._missing[stack])


@pytest.mark.parametrize("before", [None, Deployed(fingerprint="f", stacks=("a", "b"))])
def test_resources_that_a_stack_lists_and_their_service_forgot_are_lost(before: Deployed | None) -> None:
    cases: tuple[tuple[dict[str, list[str]], str | None], ...] = (
        ({"a": [], "b": []}, None),
        ({"a": [], "b": ["table t"]}, "table t"),
        ({"a": ["table t", "role r"], "b": ["rule x"]}, "table t and 2 more"),
    )
    for missing, lost in cases:
        assert find_lost(before, ListedResources(missing), has_buckets=True) == lost


def test_stacks_that_are_gone_are_lost_and_before_the_first_deployment_nothing_is() -> None:
    assert find_lost(Deployed(fingerprint="f", stacks=("a",)), ListedResources({}), has_buckets=False) == "its stacks"
    assert find_lost(None, ListedResources({}), has_buckets=True) == "its stacks"
    assert find_lost(None, ListedResources({}), has_buckets=False) is None
