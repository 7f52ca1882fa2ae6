"""The arithmetic of published figures, and nothing else."""

import pytest

from traindyno.core.suite.arithmetic import ArithmeticInvalid, evaluate


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1 + 2 * 3", 7.0),
        ("(1 + 2) * 3", 9.0),
        ("1 - x / 4", 0.5),
        ("-x ** 2", -4.0),
        ("2 ** -1", 0.5),
        ("1.5e3", 1500.0),
        ("1 ** 100", 1.0),
        ("1 ** -100", 1.0),
        ("1*" * 249 + "x ", 2.0),
    ],
)
def test_sums_products_powers_and_names(text: str, value: float) -> None:
    assert evaluate(text, {"x": 2.0}) == value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "1 / 0: "),
        ("1 +", "1 \\+: "),
        ("y + 1", "y is not given; given are x"),
        ("1 ** 101", "expected at most 100"),
        ("1 ** -101", "expected at most 100"),
        ("True + 1", "got True, expected numbers"),
        ("x % 2", "expected numbers, names"),
        ("abs(x)", "expected numbers, names"),
        ("1e300 ** 2", "1e300"),
        ("1*" * 250 + "1", "501 letters, expected at most 500"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(ArithmeticInvalid, match=message):
        evaluate(text, {"x": 2.0})


def test_without_names_none_is_named() -> None:
    with pytest.raises(ArithmeticInvalid, match="x is not given; given are no names"):
        evaluate("x", {})
