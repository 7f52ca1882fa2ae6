"""How money is rounded, apportioned and written."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.properties import examples
from traindyno.core.costs.quantity_text import apportion, dollars, exact_usd_text, to_cents


@pytest.mark.parametrize(
    ("amount", "cents"),
    [("0.005", "0.01"), ("0.0049", "0.00"), ("-0.005", "-0.01"), ("12.344", "12.34")],
)
def test_half_a_cent_is_rounded_up(amount: str, cents: str) -> None:
    assert to_cents(Decimal(amount)) == Decimal(cents)


def test_cents_are_whole_and_add_up() -> None:
    amounts = [Decimal(text) for text in ("1.234", "2.345", "3.456")]
    # 1.23, 2.34 and 3.45 are 7.02: the two largest remainders, 0.006 and 0.005, get the two cents
    # left of 7.04
    assert apportion(amounts, Decimal("7.04")) == [
        Decimal("1.23"),
        Decimal("2.35"),
        Decimal("3.46"),
    ]
    assert apportion(amounts, Decimal("7.02")) == [
        Decimal("1.23"),
        Decimal("2.34"),
        Decimal("3.45"),
    ]
    assert apportion([], Decimal(0)) == []


@examples(100)
@given(st.lists(st.decimals(0, 10**6, places=6), min_size=1, max_size=24))
def test_apportioned_amounts_are_within_a_cent_and_add_up_to_the_bill(
    amounts: list[Decimal],
) -> None:
    total = to_cents(sum(amounts, Decimal(0)))
    parts = apportion(amounts, total)
    assert sum(parts, Decimal(0)) == total
    assert all(
        abs(part - amount) <= Decimal("0.01") for part, amount in zip(parts, amounts, strict=True)
    )


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        ("6.4548121", "$6.454812"),
        ("7.090", "$7.09"),
        ("7", "$7.00"),
        ("0.1", "$0.10"),
        ("1234.5678", "$1,234.5678"),
    ],
)
def test_an_exact_amount_has_all_its_digits(amount: str, text: str) -> None:
    assert exact_usd_text(Decimal(amount)) == text


def test_the_sign_is_before_the_dollar() -> None:
    assert (dollars(Decimal("-1234.50")), dollars("-0.5"), dollars("0.5")) == (
        "-$1,234.50",
        "-$0.5",
        "$0.5",
    )
