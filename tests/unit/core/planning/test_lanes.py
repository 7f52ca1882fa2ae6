"""Lanes and how instances are shared among them."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.unit.suites import small_suite
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.planning.lanes import LaneDemand, lane_id_of, share_instances, split_lanes
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.runs import trial_runs

LANE = st.tuples(
    st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=5), st.integers(8, 30)
)


def demand(
    name: str, sizes: list[int], available: int | None, shares_host: bool = False
) -> LaneDemand:
    return LaneDemand(
        lane_id=name, sizes=tuple(sizes), available=available, shares_host=shares_host
    )


def test_a_lane_is_one_instance_type_with_its_runs_in_order() -> None:
    matrix = {"instance": ["ml.g5.xlarge", "ml.g6.xlarge"]}
    suite = small_suite(training={}, matrix=matrix, baseline={})
    lanes = split_lanes(share_jobs(trial_runs("e", suite.cells, [1, 2]), suite), Purchase.SPOT)
    assert [lane.lane_id for lane in lanes] == ["ml-g5-xlarge-spot", "ml-g6-xlarge-spot"]
    assert [[run.trial for run in lane.runs] for lane in lanes] == [[1, 2], [1, 2]]
    assert lane_id_of("ml.p6-b200.48xlarge", Purchase.ON_DEMAND) == "ml-p6-b200-48xlarge-on-demand"


@pytest.mark.parametrize(
    ("sizes", "available", "concurrency"),
    [
        ([1, 1, 1, 1], 3, 3),
        ([1, 1], 8, 2),  # no more at once than there are runs
        ([16, 8, 4, 2] * 3, 16, 1),
        ([16, 8, 4, 2] * 3, 32, 2),  # the two largest, 16 + 16, may meet
        ([16, 8, 4, 2], 26, 2),  # 16 + 8 = 24; with 4 it would be 28
        ([4], 0, 1),  # nothing free now: its runs wait for a slot
        ([4, 4], None, 1),  # unknown: one at a time
    ],
)
def test_concurrency_counts_instances_of_the_largest_runs(
    sizes: list[int], available: int | None, concurrency: int
) -> None:
    assert share_instances([demand("a", sizes, available)], None).runs == {"a": concurrency}


THREE = [demand("a", [16], 16), demand("b", [16], 16), demand("c", [4], 16)]
CPU = demand("cpu", [1] * 5, 100, shares_host=True)


@pytest.mark.parametrize(
    ("lanes", "account", "at_once", "runs"),
    [
        # by turns: a 1, b 1, then a 2 (4 + 1 = 5), b 2 (6), a would be 8, b 3 (7)
        ([demand("a", [2] * 10, 100), demand("b", [1] * 10, 100)], 7, 2, [2, 3]),
        # lanes that do not fit together take turns
        (THREE, 20, 1, [1, 1, 1]),
        (THREE, 32, 2, [1, 1, 1]),
        (THREE, 36, 3, [1, 1, 1]),
        # without a known total of the account all run together
        (THREE[:1], None, 1, [1]),
        (THREE, None, 3, [1, 1, 1]),
        # this machine runs one job at a time whatever is allowed, and beside a lane of AWS
        ([CPU, demand("gpu", [1] * 5, 100, shares_host=True)], None, 1, [1, 1]),
        ([CPU, demand("a", [1] * 3, 3)], None, 2, [1, 3]),
    ],
)
def test_lanes_share_the_quota_of_the_account(
    lanes: list[LaneDemand], account: int | None, at_once: int, runs: list[int]
) -> None:
    shared = share_instances(lanes, account)
    assert (shared.lanes, [shared.runs[lane.lane_id] for lane in lanes]) == (at_once, runs)


@examples(200)
@given(st.integers(8, 40), st.lists(LANE, min_size=1, max_size=4))
def test_no_meeting_of_runs_passes_a_limit(
    account: int, drawn: list[tuple[list[int], int]]
) -> None:
    lanes = [
        demand(str(number), sizes, available) for number, (sizes, available) in enumerate(drawn)
    ]
    shared = share_instances(lanes, account)
    peaks = [sum(sorted(lane.sizes, reverse=True)[: shared.runs[lane.lane_id]]) for lane in lanes]
    assert all(peak <= (lane.available or 0) for peak, lane in zip(peaks, lanes, strict=True))
    assert all(sum(meeting) <= account for meeting in combinations(peaks, shared.lanes))
