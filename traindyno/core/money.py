"""How amounts of money are rounded and written."""

from decimal import ROUND_HALF_UP, Decimal

CENT = Decimal("0.01")
MILLIONTH = Decimal("0.000001")


def to_cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


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
