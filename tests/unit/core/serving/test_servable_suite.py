"""Which suites leave a model that can be deployed, and what the others lack."""

from typing import Any

import pytest

from tests.unit.suites import script_document, small_document
from traindyno.core.serving.servable_suite import why_not_servable
from traindyno.core.suite.checks.accepted_suite import parse_suite

SAVES = {"trials": 2, "save_model": True}


def test_a_suite_that_saves_its_models_can_be_deployed() -> None:
    assert why_not_servable(parse_suite(small_document(measurement=SAVES))) is None


@pytest.mark.parametrize(
    ("document", "says"),
    [
        (small_document(), "the suite keeps no model; add to it measurement: {save_model: true}, then run it again"),
        (script_document(), "expected one of causal-lm, masked-lm, sequence-classification"),
        (
            small_document(
                measurement=SAVES, workload={**small_document()["workload"], "dataset": {"format": "synthetic"}}
            ),
            "synthetic data has no tokenizer",
        ),
    ],
    ids=["not saved", "script", "synthetic"],
)
def test_what_a_suite_lacks_is_said(document: dict[str, Any], says: str) -> None:
    assert says in (why_not_servable(parse_suite(document)) or "")
