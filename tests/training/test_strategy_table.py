"""docs/models.md says what the tests train and refuse. TRAINDYNO_WRITE_DOCS=1 writes it anew."""

import os

import pytest

from tests.training.strategy_table import DOCUMENT, REFUSED, generated, reasons, write_part


def test_the_documents_table_has_every_row_that_the_tests_train() -> None:
    """Each of its passes is a test of test_strategies.py, by ``make nightly``."""
    if os.environ.get("TRAINDYNO_WRITE_DOCS"):
        write_part(generated())
    assert generated() in DOCUMENT.read_text()


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_what_the_document_calls_refused_is_refused(options: dict[str, object]) -> None:
    assert reasons(options)
