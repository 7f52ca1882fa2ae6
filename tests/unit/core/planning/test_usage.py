"""Instances in use, by the quota that counts them."""

import pytest

from traindyno.core.planning.quotas import (
    HeldInstances,
    Quota,
    account_quota,
    count_in_use,
    instance_quota,
    job_size_quota,
)
from traindyno.core.suite.choices import Purchase

G5 = "ml.g5.xlarge"
P4D = "ml.p4d.24xlarge"


def held(instance_type: str, count: int, *, is_spot: bool = False) -> HeldInstances:
    return HeldInstances(instance_type=instance_type, instance_count=count, is_spot=is_spot)


HELD = [
    held(G5, 1),
    held(G5, 2, is_spot=True),
    held(P4D, 8),
    held("local.cpu", 16),
    held("ml.new.type", 32),
]


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        (instance_quota(G5, Purchase.ON_DEMAND), 1),
        (instance_quota(G5, Purchase.SPOT), 2),
        # all types but this machine's own, an unknown one included
        (account_quota(Purchase.ON_DEMAND), 1 + 8 + 32),
        (account_quota(Purchase.SPOT), 2),
        (job_size_quota(Purchase.ON_DEMAND), None),
    ],
)
def test_each_quota_counts_its_own_instances(quota: Quota, expected: int | None) -> None:
    assert count_in_use(quota, HELD) == expected
