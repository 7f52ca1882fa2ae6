"""What the rounding of printed numbers leaves open: a decimal is rounded at its last digit, an integer is exact."""

from collections.abc import Mapping
from decimal import Decimal

from traindyno.core.suite.arithmetic import evaluate


def half_unit(printed: float) -> float:
    """Half a unit of the last printed digit: 0.005 for 41.47, 0.5 for 313. A zero at the end can't be seen."""
    exponent = Decimal(repr(float(printed))).normalize().as_tuple().exponent
    return float(Decimal(5).scaleb(min(int(exponent), 0) - 1))


def rounding_reach(arithmetic: str, numbers: Mapping[str, float]) -> float:
    """The largest change of the result that rounding its decimal inputs explains; raises ArithmeticInvalid.

    Each input moves the result in one direction, as in every arithmetic of a published figure that the lab has seen.
    """
    central = evaluate(arithmetic, numbers)
    raising = {name: _raising_change(arithmetic, numbers, name) for name in numbers}
    ends = [
        evaluate(arithmetic, {name: number + sign * raising[name] for name, number in numbers.items()})
        for sign in (-1, 1)
    ]
    return max(abs(end - central) for end in ends)


def _raising_change(arithmetic: str, numbers: Mapping[str, float], name: str) -> float:
    """Half a unit of this input, with the sign that raises the result."""
    number = numbers[name]
    if float(number).is_integer():
        return 0.0
    half = half_unit(number)
    below, above = (evaluate(arithmetic, {**numbers, name: number + change}) for change in (-half, half))
    return half if above >= below else -half
