"""The model card has what the Hub accepts in its front matter, and the figures of its receipt and
comparison.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from tests.unit.lab_in_memory import EXECUTION
from tests.unit.run_samples import completed_result
from tests.unit.slices.training.test_report import PROJECTED, trained
from tests.unit.suites import small_document
from traindyno.core.costs.projected_actual import ProjectedActual
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import suite_key
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.slices.training.card import Trained, model_card
from traindyno.slices.training.plan import Training, parse_training, training_key
from traindyno.slices.training.report import compared
from traindyno.store.results import load_results


def card_of(
    training: Training, suite: Suite, result: RunResult, compared: Sequence[ProjectedActual] = ()
) -> str:
    receipt = write_receipt([result])
    return model_card(
        Trained(
            training=training,
            suite=suite,
            result=result,
            receipt=receipt,
            compared=compared,
            files={},
            code=(),
        )
    )


@pytest.mark.parametrize(
    ("model", "dataset", "expected"),
    [
        ("org/model", "org/data", {"base_model": "org/model", "datasets": ["org/data"]}),
        ("s3://bucket/model/", "s3://bucket/data/", {}),
    ],
)
def test_only_hub_ids_are_named_to_the_hub(
    model: str, dataset: str, expected: dict[str, Any]
) -> None:
    document = small_document()
    document["workload"] |= {"model": {"path": model}, "dataset": {"path": dataset}}
    suite = parse_suite(document)
    cell, _ = expand_cells(suite)
    result = completed_result(cell, 1, suite=suite)
    card = card_of(Training(training_id="a", execution_id="a", cell=cell, steps=9), suite, result)
    front = yaml.safe_load(card.split("---\n")[1])
    assert {name: front[name] for name in ("base_model", "datasets") if name in front} == expected


def test_amounts_below_a_dollar_are_not_rounded_to_whole_cents() -> None:
    """4 s at $1.20 an hour."""
    lab = trained(projected=PROJECTED)
    training = lab.bucket.read_as(training_key(EXECUTION), parse_training)
    (result,) = load_results(lab.bucket, EXECUTION)
    cheap = replace(
        result, attempts=tuple(replace(each, billable_seconds=4.0) for each in result.attempts)
    )
    suite = lab.bucket.read_as(suite_key(EXECUTION), read_stored_suite)
    card = card_of(training, suite, cheap, compared(training, cheap))
    assert "| 4.00 s | $0.00133 |" in card
    assert "| cost | $0.10 ($0.05 to $0.15) | $0.00133 |" in card
