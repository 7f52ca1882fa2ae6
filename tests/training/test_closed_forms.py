"""The closed form of memory beside the trainer's own steps on fake tensors."""

import pytest

from bench.estimates import memory_errors

pytestmark = pytest.mark.usefixtures("of_one_thread")


def test_peaks_of_drawn_models_are_below_the_upper_end() -> None:
    """``python -m bench estimates`` tries more of them."""
    found = list(memory_errors(4, seed=11))
    assert all(is_below for _, is_below in found)
    assert all(0.6 < ratio < 1.5 for ratio, _ in found)
