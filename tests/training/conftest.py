"""Data that many runs train on, and the threads of tests that compare small models."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.family_sweep import one_thread
from tests.training.run_documents import write_reviews, write_texts


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_texts(tmp_path_factory.mktemp("data") / "texts")


@pytest.fixture(scope="session")
def reviews(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_reviews(tmp_path_factory.mktemp("data") / "reviews")


@pytest.fixture
def of_one_thread() -> Iterator[None]:
    with one_thread():
        yield
