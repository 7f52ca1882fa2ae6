"""Quotas from a file: what it names is known, what it does not name is not."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.sentences import Snapshot
from traindyno.core.errors import DocumentInvalid
from traindyno.core.planning.quotas import (
    Quota,
    QuotaReading,
    account_quota,
    instance_quota,
    parse_quotas,
    run_time_quota,
)
from traindyno.core.suite.choices import Purchase

P4D = "ml.p4d.24xlarge for training job usage"


def read(quotas: Mapping[str, Any], *wanted: Quota) -> list[QuotaReading]:
    return [*parse_quotas({"region": "us-east-1", "quotas": quotas}).needed(wanted).values()]


@pytest.mark.parametrize(
    ("quota", "given", "expected"),
    [
        (instance_quota("ml.p4d.24xlarge", Purchase.ON_DEMAND), 4, (4, None, 4, 4)),
        (
            instance_quota("ml.p4d.24xlarge", Purchase.ON_DEMAND),
            {"applied": 4, "in_use": 1},
            (4, 1, 4, 3),
        ),
        # AWS's default is 4
        (account_quota(Purchase.ON_DEMAND), {"in_use": 1}, (None, 1, 4, 3)),
    ],
)
def test_a_number_is_the_applied_value_and_aws_has_a_default(
    quota: Quota, given: Any, expected: tuple[Any, ...]
) -> None:
    (reading,) = read({quota.name: given}, quota)
    assert (reading.applied, reading.in_use, reading.limit, reading.available) == expected


def test_a_suite_gets_its_needed_quotas_and_no_others() -> None:
    wanted = [instance_quota("ml.p4d.24xlarge", Purchase.ON_DEMAND), run_time_quota()]
    named, unnamed = read({P4D: 4, "ml.g5.xlarge for training job usage": 8}, *wanted)
    assert (named.quota, named.quota.code, named.applied) == (wanted[0], "L-09B4A649", 4)
    # AWS's default of 432,000 s is not assumed for an account of which nothing was said
    assert (unnamed.quota, unnamed.applied, unnamed.limit) == (wanted[1], None, None)


def test_all_problems_come_at_once(snapshot: Snapshot) -> None:
    wrong = {"ml.p4d.24xlarge for training jobs usage": 4, P4D: {"applid": 4}, "p": -3, "q": 1.5}
    with pytest.raises(DocumentInvalid) as caught:
        parse_quotas({"quotas": wrong})
    said = str(caught.value)
    assert f'did you mean "{P4D}"?' in said
    snapshot(said)
    assert "quotas.q.applied: got 1.5, expected an integer" in said
    assert "region: got nothing, expected text" in said
