"""Lanes and how instances are shared among them."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from tests.unit.suites import small_suite
from traindyno.core.planning.jobs import share_jobs
from traindyno.core.planning.lanes import LaneDemand, lane_id_of, share_instances, split_lanes
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.choices import Purchase
from traindyno.core.suite.runs import trial_runs


def demand(name: str, sizes: list[int], available: int | None, shares_host: bool = False) -> LaneDemand:
    return LaneDemand(lane_id=name, sizes=tuple(sizes), available=available, shares_host=shares_host)


def test_a_lane_is_one_instance_type_in_the_order_of_its_runs() -> None:
    matrix = {"instance": ["ml.g5.xlarge", "ml.g6.xlarge"]}
    suite = small_suite(training={}, matrix=matrix, baseline={})
    lanes = split_lanes(share_jobs(trial_runs("e", expand_cells(suite), [1, 2]), suite), Purchase.SPOT)
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


def test_lanes_share_what_the_account_has() -> None:
    lanes = [demand("a", [2] * 10, 100), demand("b", [1] * 10, 100)]
    shared = share_instances(lanes, 7)
    # by turns: a 1, b 1, then a 2 (4 + 1 = 5), b 2 (6), a would be 8, b 3 (7)
    assert (shared.lanes, shared.runs) == (2, {"a": 2, "b": 3})


def test_lanes_that_do_not_fit_together_take_turns() -> None:
    lanes = [demand("a", [16], 16), demand("b", [16], 16), demand("c", [4], 16)]
    assert share_instances(lanes, 20).lanes == 1
    assert share_instances(lanes, 32).lanes == 2
    assert share_instances(lanes, 36).lanes == 3


def test_this_machine_runs_one_job_at_a_time_whatever_is_allowed() -> None:
    lanes = [demand("cpu", [1] * 5, 100, shares_host=True), demand("gpu", [1] * 5, 100, shares_host=True)]
    shared = share_instances(lanes, None)
    assert (shared.lanes, shared.runs) == (1, {"cpu": 1, "gpu": 1})


LANE = st.tuples(st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=5), st.integers(8, 30))


@examples(200)
@given(st.integers(8, 40), st.lists(LANE, min_size=1, max_size=4))
def test_no_meeting_of_runs_passes_a_limit(account: int, drawn: list[tuple[list[int], int]]) -> None:
    lanes = [demand(str(number), sizes, available) for number, (sizes, available) in enumerate(drawn)]
    shared = share_instances(lanes, account)
    peaks = [sum(sorted(lane.sizes, reverse=True)[: shared.runs[lane.lane_id]]) for lane in lanes]
    assert all(peak <= (lane.available or 0) for peak, lane in zip(peaks, lanes, strict=True))
    assert all(sum(meeting) <= account for meeting in combinations(peaks, shared.lanes))


def test_without_a_known_account_total_all_lanes_run_together() -> None:
    one, two = demand("a", [1], 1), demand("b", [1], 1)
    assert share_instances([one], None).lanes == 1
    assert share_instances([one, two, demand("c", [1], 1)], None).lanes == 3


def test_one_lane_of_this_machine_runs_beside_a_lane_of_aws() -> None:
    lanes = [demand("cpu", [1] * 3, None, shares_host=True), demand("a", [1] * 3, 3)]
    shared = share_instances(lanes, None)
    assert (shared.lanes, shared.runs) == (2, {"cpu": 1, "a": 3})
