"""The model card's front matter has what the Hub accepts: a dataset or model elsewhere is no Hub id."""

from typing import Any

import pytest
import yaml

from tests.unit.run_samples import completed_result
from tests.unit.suites import small_document
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.slices.training.card import Trained, model_card
from traindyno.slices.training.plan import Training


@pytest.mark.parametrize(
    ("model", "dataset", "expected"),
    [
        ("org/model", "org/data", {"base_model": "org/model", "datasets": ["org/data"]}),
        ("s3://bucket/model/", "s3://bucket/data/", {}),
    ],
)
def test_only_hub_ids_are_named_to_the_hub(model: str, dataset: str, expected: dict[str, Any]) -> None:
    document = small_document()
    document["workload"] |= {"model": {"path": model}, "dataset": {"path": dataset}}
    suite = parse_suite(document)
    cell, _ = expand_cells(suite)
    result = completed_result(cell, 1, suite=suite)
    card = model_card(
        Trained(
            training=Training(training_id="a", execution_id="a", cell=cell, steps=9),
            suite=suite,
            result=result,
            receipt=write_receipt([result]),
            compared=(),
            files={},
            code=(),
        )
    )
    front = yaml.safe_load(card.split("---\n")[1])
    assert {name: front[name] for name in ("base_model", "datasets") if name in front} == expected
