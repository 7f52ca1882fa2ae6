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
    """$7.09 or $6.454812: to a millionth, where two rounded amounts would look equal; at least whole cents."""
    exact, cents = amount.quantize(MILLIONTH).normalize(), to_cents(amount)
    return dollars(cents if exact == cents else exact)


def dollars(amount: Decimal | str) -> str:
    """$1,234.50: the one way in which money is written."""
    text = f"{amount:,f}" if isinstance(amount, Decimal) else amount
    return f"-${text[1:]}" if text.startswith("-") else f"${text}"
