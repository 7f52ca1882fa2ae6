"""Evaluate the arithmetic of a published figure: numbers, names given for them, + - * / ** and brackets; no more."""

import ast
import operator
from collections.abc import Callable, Mapping

from traindyno.core.errors import TraindynoError

MOST_LETTERS = 500
LARGEST_EXPONENT = 100
BINARY: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


class ArithmeticInvalid(TraindynoError):
    """The text is not arithmetic that can be evaluated."""


def evaluate(text: str, names: Mapping[str, float]) -> float:
    try:
        if len(text) > MOST_LETTERS:
            raise ArithmeticInvalid(f"{text[:40]}…: got {len(text)} letters, expected at most {MOST_LETTERS}")
        return _value(ast.parse(text, mode="eval").body, names)
    except (SyntaxError, ZeroDivisionError, OverflowError) as error:
        raise ArithmeticInvalid(f"{text}: {error}") from error


def _value(node: ast.expr, names: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return float(number)
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.Name(id=name):
            raise ArithmeticInvalid(f"{name} is not given; given are {', '.join(names) or 'no names'}")
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, names)
        case ast.BinOp(left=left, op=operation, right=right) if type(operation) in BINARY:
            values = _value(left, names), _value(right, names)
            if isinstance(operation, ast.Pow) and abs(values[1]) > LARGEST_EXPONENT:
                raise ArithmeticInvalid(
                    f"{ast.unparse(node)}: got exponent {values[1]:g}, expected at most {LARGEST_EXPONENT}"
                )
            return BINARY[type(operation)](*values)
        case _:
            raise ArithmeticInvalid(f"got {ast.unparse(node)}, expected numbers, names, + - * / ** and brackets")
