"""Quantities as a person reads them: three or four digits and a unit; what is not known is "unknown"."""

from decimal import Decimal
from math import floor, log10

UNKNOWN = "unknown"
MINUTE, HOUR, DAY = 60, 3600, 86_400


def number_text(value: float | None, *, digits: int = 3) -> str:
    """Significant digits without an exponent: 1,234 and 12.3 and 0.00123."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - floor(log10(abs(rounded)))
    return f"{rounded:,.{decimals}f}" if decimals > 0 else f"{value:,.0f}"


def count_text(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def seconds_text(seconds: float | None) -> str:
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{number_text(seconds * 1000)} ms"
    if seconds < 2 * MINUTE:
        return f"{number_text(seconds)} s"
    if seconds < 2 * HOUR:
        return f"{number_text(seconds / MINUTE)} min"
    return f"{number_text(seconds / HOUR)} h" if seconds < 2 * DAY else f"{number_text(seconds / DAY)} days"


def usd_text(usd: Decimal | float | None) -> str:
    """Cents, or three digits where the sum is below a dollar."""
    if usd is None:
        return UNKNOWN
    amount = float(usd)
    return f"{usd:,.2f} $" if abs(amount) >= 1 or amount == 0 else f"{number_text(amount)} $"


def share_text(share: float | None, *, digits: int = 1) -> str:
    return UNKNOWN if share is None else f"{share * 100:.{digits}f} %"


def bytes_text(count: int | None) -> str:
    if count is None:
        return UNKNOWN
    return f"{number_text(count / 2**30)} GiB" if count >= 2**30 else f"{number_text(count / 2**20)} MiB"
