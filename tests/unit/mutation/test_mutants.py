"""Which faults are made of a module: hand-counted."""

import ast

from tests.mutation.mutants import find_mutants, mutated


def changes(source: str) -> list[tuple[str, str]]:
    return [(mutant.before, mutant.after) for mutant in find_mutants(source)]


def test_each_operator_and_number_gives_its_faults() -> None:
    assert changes("def f(a, b):\n    return a < b - 2\n") == [
        ("a < b - 2", "a <= b - 2"),
        ("a < b - 2", "a > b - 2"),
        ("b - 2", "b + 2"),
        ("2", "3"),
    ]
    assert changes("x = not a and max(b, -c)") == [
        ("not a and max(b, -c)", "not a or max(b, -c)"),
        ("not a", "a"),
        ("max(b, -c)", "min(b, -c)"),
        ("-c", "c"),
    ]
    assert changes("x = a if b else True") == [("a if b else True", "True if b else a"), ("True", "False")]


def test_annotations_decorators_and_texts_stay() -> None:
    source = (
        '@dataclass(frozen=True)\nclass A:\n    """1 < 2."""\n    b: int | None\n    def c(self) -> A | None: ...\n'
    )
    assert changes(source) == []
    assert changes("x = zip(a, b, strict=True)") == []
    assert changes('x = f"{a:.2f} of 3"') == []


def test_a_mutant_differs_in_one_place_and_knows_where() -> None:
    source = "LIMIT = 0.02\n\n\nclass A:\n    def b(self):\n        return LIMIT + 1\n"
    first, second, third = find_mutants(source)
    assert (first.line, first.function, first.after) == (1, "", "1.02")
    assert (second.line, second.function, second.after) == (6, "A.b", "LIMIT - 1")
    assert (third.line, third.after) == (6, "2")
    assert mutated(source, second) == ast.unparse(ast.parse(source.replace("+", "-")))


def test_an_expression_inside_a_formatted_text_is_reached() -> None:
    assert changes('x = f"{a - b} left"') == [("a - b", "a + b")]
