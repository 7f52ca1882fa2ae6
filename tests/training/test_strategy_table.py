"""docs/models.md and docs/results say what the tests train and refuse.

TRAINDYNO_WRITE_DOCS=1 writes them anew.
"""

import os

import pytest

from tests.training.result_files import read_rows, write_rows
from tests.training.strategy_table import (
    DOCUMENT,
    REFUSAL_COLUMNS,
    REFUSAL_FILE,
    REFUSED,
    STRATEGY_COLUMNS,
    STRATEGY_FILE,
    generated,
    reasons,
    refusal_rows,
    strategy_rows,
    write_part,
)


def test_the_files_have_every_row_and_the_page_their_counts() -> None:
    """Each row of strategies.csv is a test of test_strategies.py, by ``make nightly``."""
    if os.environ.get("TRAINDYNO_WRITE_DOCS"):
        write_rows(STRATEGY_FILE, STRATEGY_COLUMNS, strategy_rows())
        write_rows(REFUSAL_FILE, REFUSAL_COLUMNS, refusal_rows())
        write_part(generated())
    assert read_rows(STRATEGY_FILE) == strategy_rows()
    assert read_rows(REFUSAL_FILE) == refusal_rows()
    assert generated() in DOCUMENT.read_text()


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_refusals_of_the_file_are_refused(options: dict[str, object]) -> None:
    assert reasons(options)
