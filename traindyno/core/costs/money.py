"""How amounts of money are rounded and written."""

from collections.abc import Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")
MILLIONTH = Decimal("0.000001")


def to_cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def apportion(amounts: Sequence[Decimal], total: Decimal) -> list[Decimal]:
    """Each amount in whole cents, so that they add up to ``total``: the largest remainders get the cents left over."""
    floors = [amount.quantize(CENT, rounding=ROUND_FLOOR) for amount in amounts]
    missing = int((total - sum(floors, Decimal(0))) / CENT)
    by_remainder = sorted(range(len(amounts)), key=lambda index: floors[index] - amounts[index])
    given = set(by_remainder[:missing])
    return [floor + CENT if index in given else floor for index, floor in enumerate(floors)]


def exact_usd_text(amount: Decimal) -> str:
    """To a millionth, where two rounded amounts would look equal."""
    return format(amount.quantize(MILLIONTH).normalize(), "f")


def usd_text(amount: Decimal | None) -> str:
    """Two decimals, more where an amount is below a cent; "unknown" for None."""
    if amount is None:
        return "unknown"
    if amount and abs(amount) < CENT:
        return format(amount.normalize(), "f")[:10]
    return format(to_cents(amount), "f")
