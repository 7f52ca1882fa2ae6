"""The families of transformers train as transformers' own models do. ``make chaos`` tries every family."""

import os

import pytest
import transformers

from tests.training.family_page import NAMES, PAGE, row, strategy_row, version_line
from tests.training.family_strategies import TRAINED, outcomes
from tests.training.family_sweep import compare

EVERY_FAMILY = bool(os.environ.get("TRAINDYNO_EVERY_FAMILY"))  # make chaos sets it
LEAST_EQUAL = 120


@pytest.mark.parametrize("name", NAMES if EVERY_FAMILY else TRAINED)
def test_a_family_trains_as_the_page_says(name: str) -> None:
    assert row(name, compare(name)) in PAGE.read_text().splitlines()


@pytest.mark.parametrize("name", TRAINED)
def test_a_family_trains_in_two_processes_as_the_page_says(name: str) -> None:
    assert strategy_row(name, outcomes()[name]) in PAGE.read_text().splitlines()


def test_the_page_has_every_family_of_the_pinned_version() -> None:
    lines = PAGE.read_text().splitlines()
    assert version_line() in lines
    assert transformers.__version__ in version_line()
    first_cells = [line.split(" | ")[:2] for line in lines if line.endswith((" counted |", " unknown |", " | | | |"))]
    assert [f"{task}/{kind.removeprefix('| ')}" for kind, task in first_cells] == NAMES


def test_the_page_names_no_family_that_trains_as_another_model() -> None:
    text = PAGE.read_text()
    assert "differ" not in text
    assert text.count("| equal | equal | ") >= LEAST_EQUAL
