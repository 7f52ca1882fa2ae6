"""What a preparation was billed, and its stored form."""

import json

import pytest

from tests.unit.run_samples import PRICE, make_attempt
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import (
    PreparationResult,
    parse_preparation_result,
    preparation_result_document,
)
from traindyno.core.run.tokens import DataPreparation


def prepared(*billable: float | None) -> PreparationResult:
    return PreparationResult(
        preparation=DataPreparation(
            execution_id="e", key="0" * 64, packing=True, instance="ml.m5.xlarge"
        ),
        outcome=Outcome.COMPLETED,
        message=None,
        log_tail=(),
        attempts=tuple(
            make_attempt(number=number, billable_seconds=seconds)
            for number, seconds in enumerate(billable, start=1)
        ),
        phases_seconds={"tokenise": 12.0},
        price=PRICE,
    )


@pytest.mark.parametrize(
    ("billable", "expected"),
    [((100.0, 20.0), 120.0), ((0.0,), 0.0), ((100.0, None), None), ((), None)],
)
def test_the_bill_is_the_sum_of_all_attempts_or_unknown(
    billable: tuple[float | None, ...], expected: float | None
) -> None:
    assert prepared(*billable).billable_seconds == expected


def test_the_document_reads_back_equal_and_says_its_version() -> None:
    result = prepared(100.0)
    document = json.loads(json.dumps(preparation_result_document(result)))
    assert document["version"] == 1
    assert parse_preparation_result(document) == result
