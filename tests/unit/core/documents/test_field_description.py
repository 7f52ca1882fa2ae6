"""Bounds: what they accept at their ends, and how they are written."""

import pytest

from traindyno.core.documents.field_description import Bound


@pytest.mark.parametrize(
    ("bound", "accepted", "refused", "text"),
    [
        (Bound(above=0), [0.001, 5], [0, -1], "more than 0"),
        (Bound(least=1), [1, 2], [0, 0.999], "at least 1"),
        (Bound(most=2_419_200), [2_419_200, -5], [2_419_201], "at most 2419200"),
        (Bound(above=0, most=1), [0.5, 1], [0, 1.5], "more than 0 and at most 1"),
        (Bound(least=0.5, most=1000), [0.5, 1000], [0.4, 1001], "at least 0.5 and at most 1000"),
        (Bound(), [-1e9, 0, 1e9], [], ""),
    ],
)
def test_a_bound_at_its_ends(bound: Bound, accepted: list[float], refused: list[float], text: str) -> None:
    assert all(map(bound.accepts, accepted))
    assert not any(map(bound.accepts, refused))
    assert str(bound) == text
