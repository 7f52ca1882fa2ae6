import pytest

from traindyno.core.verdict.verdict_text import names_text


@pytest.mark.parametrize(
    ("labels", "text"),
    [
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["a", "b", "c"], "a, b and c"),
        (["a", "b", "c", "d"], "4 other cells"),
    ],
)
def test_up_to_three_cells_are_named(labels: list[str], text: str) -> None:
    assert names_text(labels) == text
