"""Attributes of libraries that are replaced for a while."""

import pytest

from training.models.blueprint import replaced


class Library:
    @staticmethod
    def answer() -> int:
        return 1


def test_the_original_is_back_afterwards_and_after_an_error() -> None:
    original = vars(Library)["answer"]
    with replaced(Library, "answer", lambda: 2):
        assert Library.answer() == 2
    with pytest.raises(ValueError, match="inside"), replaced(Library, "answer", lambda: 2):
        raise ValueError("inside")
    # the static method itself, and not the function that it holds
    assert vars(Library)["answer"] is original
