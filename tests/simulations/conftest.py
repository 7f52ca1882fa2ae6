"""Simulations judge the method and take minutes: ``make nightly`` runs them, or ``pytest -m
nightly`` by hand.
"""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker(pytest.mark.nightly)
