"""What a reader is warned of, and when not."""

from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.verdict_samples import BEST, SECOND, THIRD, make_row, make_verdict
from traindyno.core.measurement.loss_parity import LossParity, ParityFinding
from traindyno.core.verdict.cautions import describe_cautions, describe_parity
from traindyno.core.verdict.conditions import Confound, Difference
from traindyno.core.verdict.verdict import Finding
from traindyno.figures.estimates import Estimate, Interval

HOSTS = (
    "Some cells were measured on one machine only; another may differ by more than the intervals "
    "say."
)
UNKNOWN_HOSTS = (
    "The hosts of some trials are unknown. Each of these trials counts as a new draw of hosts."
)


def cautions(
    best: dict[str, Any] | None = None, second: dict[str, Any] | None = None, **changes: Any
) -> list[str]:
    rows = (make_row(**(best or {})), make_row(SECOND, **(second or {})))
    return list(describe_cautions(make_verdict(rows=rows, **changes)))


def test_a_sound_verdict_has_no_cautions() -> None:
    assert cautions() == []


def test_a_batch_reduced_by_a_script_is_told(snapshot: Snapshot) -> None:
    snapshot(cautions(second={"reduced": ("32 became 8",)}))


def test_failures_of_other_cells_are_counted_and_the_success_rate_is_explained(
    snapshot: Snapshot,
) -> None:
    snapshot(cautions(second={"failed": 2, "diverged": 1}))
    # the headline tells of the recommended cell's own
    snapshot(cautions(best={"failed": 1}))
    # a cell without any measured trial has no time to divide
    snapshot(cautions(second={"failed": 2, "trials": 0}))


@pytest.mark.parametrize(
    ("draws", "expected"),
    [
        ((2, 2), []),
        ((1, 2), [HOSTS]),
        ((2, 1), [HOSTS]),
        ((None, 2), [UNKNOWN_HOSTS]),
        ((None, None), [UNKNOWN_HOSTS]),
    ],
)
def test_one_set_of_hosts_is_a_caution_and_so_are_unknown_ones(
    draws: tuple[int | None, int | None], expected: list[str]
) -> None:
    assert cautions({"draws": draws[0]}, {"draws": draws[1]}) == expected


def test_hosts_matter_only_between_compared_cells() -> None:
    assert cautions({"draws": 1}, finding=Finding.ONLY_ONE) == []
    assert cautions({"draws": 1}, recommended=None, rivals=()) == []


def rate(variation: float | None) -> Estimate:
    return Estimate(mean=100.0, count=3, variation=variation, interval=None)


def test_a_spread_above_a_tenth_is_looked_at(snapshot: Snapshot) -> None:
    assert cautions({"samples_per_second": rate(0.1)}, {"samples_per_second": rate(None)}) == []
    (two,) = cautions({"samples_per_second": rate(0.13)}, {"samples_per_second": rate(0.21)})
    snapshot(two)
    assert cautions({"samples_per_second": None}) == []


def test_refused_cells_are_listed_with_the_reason(snapshot: Snapshot) -> None:
    snapshot(cautions(refused={SECOND: "its price is unknown"}))


def parity(finding: ParityFinding, **changes: Any) -> LossParity:
    given: dict[str, Any] = {
        "reference_cell_id": BEST,
        "cell_id": SECOND,
        "finding": finding,
        "ratio": 1.0123,
        "interval": Interval(low=0.99, high=1.03, confidence=0.95),
        "tolerance": 0.02,
        **changes,
    }
    return LossParity(**given)


@pytest.mark.parametrize(
    "finding",
    [
        ParityFinding.AGREES,
        ParityFinding.DIFFERS,
        ParityFinding.ONE_TRIAL,
        ParityFinding.ONE_SEED,
        ParityFinding.UNDECIDED,
    ],
)
def test_a_parity_is_described_with_its_ratio(snapshot: Snapshot, finding: ParityFinding) -> None:
    snapshot(describe_parity(make_verdict(), parity(finding)))
    snapshot(describe_parity(make_verdict(), parity(finding, interval=None)))


def test_unknown_parities_are_one_caution_for_each_reference(snapshot: Snapshot) -> None:
    unknown = parity(ParityFinding.UNKNOWN, ratio=None, interval=None)
    snapshot(describe_parity(make_verdict(), unknown))
    agreeing = parity(ParityFinding.AGREES)
    snapshot(cautions(parities=(unknown, agreeing)))
    third = parity(ParityFinding.UNKNOWN, cell_id=THIRD, ratio=None, interval=None)
    rows = make_row(), make_row(SECOND), make_row(THIRD)
    (both,) = describe_cautions(make_verdict(rows=rows, parities=(unknown, third)))
    assert both.startswith("The loss of fsdp, zero1 can't")
    assert (
        len(cautions(parities=(parity(ParityFinding.DIFFERS), parity(ParityFinding.ONE_TRIAL))))
        == 2
    )


def confound(*names: str) -> Confound:
    differences = tuple(Difference(name=name, first="a", second="b") for name in names)
    return Confound(first_cell_id=SECOND, second_cell_id=BEST, differences=differences)


def test_cells_with_several_differences_are_named() -> None:
    names = ("strategy", "precision", "batch")
    pair = "ddp and fsdp differ in strategy, precision and batch"
    assert cautions(confounds=(confound(*names),)) == [f"{pair}."]


def test_simulated_results_are_named_first() -> None:
    first, *_ = cautions({"failed": 1}, is_simulated=True)
    assert first.startswith("Some of these results are simulated")
