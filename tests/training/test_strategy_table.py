"""docs/models.md says what the tests found. TRAINDYNO_WRITE_DOCS=1 TRAINDYNO_NIGHTLY=1 writes it anew."""

import os

import pytest

from tests.nightly import NIGHTLY
from tests.training.strategy_rows import Row
from tests.training.strategy_runs import LIMIT_SECONDS, differences, reference_of, results_of
from tests.training.strategy_table import DOCUMENT, REFUSED, generated, reasons, write_part
from tests.training.strategy_trial import Trained


def passed(row: Row, model: str) -> bool:
    """Also true outside of ``make nightly`` for what the document names as trained by it only, so that
    the document is written with every strategy.
    """
    if model not in row.trained:
        return True
    found = results_of(row.environment, row.processes)[f"{row.label} {model}"]
    if not isinstance(found, Trained):
        return False
    losses, parameters = differences(found, reference_of(row, model))
    return losses <= row.tolerance.loss and parameters <= row.tolerance.parameter


@pytest.mark.timeout(3 * LIMIT_SECONDS)
def test_the_documents_table_is_what_the_strategies_did() -> None:
    writes = bool(os.environ.get("TRAINDYNO_WRITE_DOCS"))
    assert NIGHTLY or not writes, "TRAINDYNO_WRITE_DOCS also needs TRAINDYNO_NIGHTLY=1: expected both"
    table = generated(passed)
    if writes:
        write_part(table)
    assert table in DOCUMENT.read_text()


@pytest.mark.parametrize("options", REFUSED, ids=str)
def test_what_the_document_calls_refused_is_refused(options: dict[str, object]) -> None:
    assert reasons(options)
