"""How quantities are written, at the values where the unit or the precision changes."""

from decimal import Decimal

import pytest

from tests.sentences import Snapshot
from traindyno.core.costs.quantity_text import (
    bytes_text,
    change_interval_text,
    change_text,
    count_text,
    number_text,
    range_text,
    seconds_text,
    share_text,
    usd_text,
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "unknown"),
        (0, "0"),
        (1234.4, "1,234"),
        (100, "100"),
        (99.96, "100"),
        (12.345, "12.3"),
        (9.996, "10.0"),
        (1, "1.00"),
        (0.00123456, "0.00123"),
        (-12.345, "-12.3"),
    ],
)
def test_numbers_have_three_digits(value: float | None, text: str) -> None:
    assert number_text(value) == text


def test_more_digits_can_be_asked_for() -> None:
    assert number_text(12.3456, digits=4) == "12.35"


def test_counts_have_separators() -> None:
    assert (count_text(1_234_567), count_text(None)) == ("1,234,567", "unknown")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "unknown"),
        (0.25, "250 ms"),
        (0.999, "999 ms"),
        (1, "1.00 s"),
        (119, "119 s"),
        (120, "2 min"),
        (164, "2 min 44 s"),
        (7_140, "119 min"),
        (7_200, "2.00 h"),
        (172_000, "47.8 h"),
        (172_800, "2.00 days"),
        (864_000, "10.0 days"),
    ],
)
def test_times_have_the_unit_of_everyday_speech(seconds: float | None, text: str) -> None:
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(
    ("usd", "text"),
    [
        (None, "unknown"),
        (Decimal("12.4"), "$12.40"),
        (1234.5, "$1,234.50"),
        (0.1, "$0.10"),
        (0.0999, "$0.0999"),
        (0.0123456, "$0.0123"),
        (Decimal("0.05"), "$0.05"),
        (-0.2, "-$0.20"),
        (-0.0123456, "-$0.0123"),
        (0, "$0.00"),
    ],
)
def test_money_has_cents_and_more_digits_below_ten_cents(
    usd: Decimal | float | None, text: str
) -> None:
    assert usd_text(usd) == text


def test_a_unit_shared_by_both_ends_of_a_range_is_written_once(snapshot: Snapshot) -> None:
    assert range_text("1.00 s", "2.00 s") == "1.00 to 2.00 s"
    snapshot(range_text("90.0 s", "2 min 30 s"))
    snapshot(range_text("2 min 30 s", "5 min 30 s"))
    assert range_text("$1.00", "$2.00") == "$1.00 to $2.00"


def test_shares_are_percentages() -> None:
    assert (share_text(0.1234), share_text(0.1234, digits=0), share_text(None)) == (
        "12.3 %",
        "12 %",
        "unknown",
    )


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.123, "+12.3 %"),
        (0.9, "−10.0 %"),
        (0.9999, "+0.0 %"),
        (9.99, "+899.0 %"),
        (10.0, "×10.0"),
        (250.0, "×250"),
    ],
)
def test_a_change_is_a_factor_from_ten_times_on(ratio: float, text: str) -> None:
    assert change_text(ratio) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (1.08, 1.168, "+12.3 % (+8.0 to +16.8 %)"),
        (0.5, 12.0, "+12.3 % (−50.0 % to ×12.0)"),
        (1e-300, 1e300, "+12.3 % (interval unknown)"),
    ],
)
def test_both_ends_of_a_change_have_their_unit(low: float, high: float, text: str) -> None:
    assert change_interval_text(1.123, low, high) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "unknown"),
        (2**20, "1.00 MiB"),
        (2**30 - 2**20, "1,023 MiB"),
        (2**30, "1.00 GiB"),
        (3 * 2**29, "1.50 GiB"),
    ],
)
def test_bytes_are_binary_units(count: int | None, text: str) -> None:
    assert bytes_text(count) == text
