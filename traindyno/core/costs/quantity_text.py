"""Quantities as a person reads them: three or four digits and a unit, or "unknown"."""

from collections.abc import Callable, Sequence
from decimal import ROUND_FLOOR, ROUND_HALF_UP, Decimal
from math import floor, log10

CENT = Decimal("0.01")
MILLIONTH = Decimal("0.000001")
UNKNOWN = "unknown"
MINUTE = 60
HOUR = 3600
DAY = 86_400
# An interval that is wider comes from an interruption rate at which no run would end.
_WIDEST = 1000
# From this share of the mean on, the ends of an interval say more than half of it.
WIDE = 0.5


def to_cents(amount: Decimal) -> Decimal:
    return amount.quantize(CENT, rounding=ROUND_HALF_UP)


def apportion(amounts: Sequence[Decimal], total: Decimal) -> list[Decimal]:
    """Each amount in whole cents, so that they add up to ``total``: the largest remainders get the
    cents left over.
    """
    floors = [amount.quantize(CENT, rounding=ROUND_FLOOR) for amount in amounts]
    missing = int((total - sum(floors, Decimal(0))) / CENT)
    by_remainder = sorted(range(len(amounts)), key=lambda index: floors[index] - amounts[index])
    given = set(by_remainder[:missing])
    return [floor + CENT if index in given else floor for index, floor in enumerate(floors)]


def exact_usd_text(amount: Decimal) -> str:
    """$7.09 or $6.454812: to a millionth, where two rounded amounts would look equal; at least
    whole cents.
    """
    exact = amount.quantize(MILLIONTH).normalize()
    cents = to_cents(amount)
    return dollars(cents if exact == cents else exact)


def dollars(amount: Decimal | str) -> str:
    """$1,234.50: the one way in which money is written."""
    text = f"{amount:,f}" if isinstance(amount, Decimal) else amount
    return f"-${text[1:]}" if text.startswith("-") else f"${text}"


def number_text(value: float | None, *, digits: int = 3) -> str:
    """Significant digits without an exponent: 1,234 and 12.3 and 0.00123."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    decimals = digits - 1 - floor(log10(abs(rounded)))
    return f"{rounded:,.{decimals}f}" if decimals > 0 else f"{value:,.0f}"


def counted(count: int, noun: str) -> str:
    """Count with its noun, as in ``1 job`` and ``2 jobs``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def joined(names: Sequence[str]) -> str:
    """List of names, as in ``a``, ``a and b``, and ``a, b and c``."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def count_text(value: int | None) -> str:
    return UNKNOWN if value is None else f"{value:,}"


def seconds_text(seconds: float | None) -> str:
    """Time, as in ``45.2 s``, ``2 min 44 s``, and ``3.50 h``."""
    if seconds is None:
        return UNKNOWN
    if seconds < 1:
        return f"{number_text(seconds * 1000)} ms"
    if seconds < 2 * MINUTE:
        return f"{number_text(seconds)} s"
    if round(seconds) < 2 * HOUR:
        minutes, rest = divmod(round(seconds), MINUTE)
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return (
        f"{number_text(seconds / HOUR)} h"
        if seconds < 2 * DAY
        else f"{number_text(seconds / DAY)} days"
    )


def time_limit_text(max_hours: Decimal) -> str:
    """The suite's limit on its time.

    ``max_minutes`` that is no hundredth of an hour was stored as hours.
    """
    if round(max_hours, 2) != max_hours:
        return f"limits.max_minutes {float(max_hours) * 60:.3g}"
    return f"limits.max_hours {max_hours}"


def usd_text(usd: Decimal | float | None) -> str:
    """$12.40; three significant digits where the sum is below ten cents."""
    if usd is None:
        return UNKNOWN
    amount = Decimal(str(usd))
    cents = to_cents(amount)
    return dollars(
        cents if abs(amount) >= Decimal("0.1") or cents == amount else number_text(float(usd))
    )


def range_text(low: str, high: str) -> str:
    """Two written quantities as a range; a unit that they share is written once.

    Minutes and seconds are kept whole.
    """
    number, _, unit = low.partition(" ")
    is_shared = unit and high.partition(" ")[2] == unit and " " not in unit
    return f"{number} to {high}" if is_shared else f"{low} to {high}"


def is_end_known(low: float, high: float) -> bool:
    """Whether both ends of an interval of a positive quantity say something about it."""
    return high <= _WIDEST * low


def interval_text(low: float, high: float, text: Callable[[float], str]) -> str:
    return range_text(text(low), text(high) if is_end_known(low, high) else UNKNOWN)


def estimate_text(mean: float, low: float, high: float, text: Callable[[float], str]) -> str:
    """The mean ± half its interval in percent of it, or from low to high where that is wide."""
    share = (high - low) / 2 / mean
    if share < WIDE:
        return f"{text(mean)} ± {share_text(share)}"
    reach = range_text(text(low), text(high)) if is_end_known(low, high) else f"interval {UNKNOWN}"
    return f"{text(mean)} ({reach})"


def share_text(share: float | None, *, digits: int = 1) -> str:
    return UNKNOWN if share is None else f"{share * 100:.{digits}f} %"


def tolerance_text(share: float) -> str:
    """3 % or 2.5 %."""
    return f"{100 * share:.3g} %"


def change_text(ratio: float) -> str:
    """+12.3 % for 1.123; as a factor from ten times on."""
    if ratio >= 10:
        return f"×{number_text(ratio)}"
    return f"{(ratio - 1) * 100:+z.1f} %".replace("-", "−")


def change_interval_text(ratio: float, low: float, high: float) -> str:
    """+12.3 % (+8.0 to +16.8 %)."""
    reach = f"interval {UNKNOWN}"
    if is_end_known(low, high):
        reach = range_text(change_text(low), change_text(high))
    return f"{change_text(ratio)} ({reach})"


def bytes_text(count: int | None) -> str:
    if count is None:
        return UNKNOWN
    return (
        f"{number_text(count / 2**30)} GiB"
        if count >= 2**30
        else f"{number_text(count / 2**20)} MiB"
    )


def place_text(place: int | None, runs: int) -> str | None:
    """Place of a run in its shared job; None if it has a job of its own."""
    if place is None:
        return None
    return f"run {place} of {runs}" if place else "not begun"
