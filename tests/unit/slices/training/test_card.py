"""The model card has what the Hub accepts in its front matter, and the figures of its receipt and
comparison.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.unit.core.documents.test_places import CHARACTERS
from tests.unit.core.documents.test_visible_text import OBEYED
from tests.unit.lab_in_memory import EXECUTION
from tests.unit.run_samples import completed_result
from tests.unit.slices.training.test_report import PROJECTED, trained
from tests.unit.suites import small_document
from traindyno.core.costs.projected_actual import ProjectedActual
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import suite_key
from traindyno.core.step_log.fields import Evaluation
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


def test_text_of_a_job_is_text_in_its_card() -> None:
    """Names of metrics and versions are the script's."""
    hostile = "".join(CHARACTERS.values())
    suite = parse_suite(small_document())
    cell, _ = expand_cells(suite)
    plain = completed_result(cell, 1, suite=suite)
    assert plain.measured is not None
    assert plain.environment is not None
    evaluation = Evaluation(time=0.0, step=3, metrics={hostile: 0.5})
    facts = {"python": hostile, "versions": {hostile: hostile}}
    result = replace(
        plain,
        measured=replace(plain.measured, evaluations=(evaluation,)),
        environment=replace(plain.environment, facts=facts),
    )
    training = Training(training_id="a", execution_id="a", cell=cell, steps=9)
    bodies = [card_of(training, suite, each).split("---\n", 2)[2] for each in (plain, result)]
    parser = MarkdownIt("commonmark").enable("table")
    headings, expected = (
        [token.tag for token in parser.parse(body) if token.type == "heading_open"]
        for body in bodies
    )
    assert headings == expected
    inline = [token for token in parser.parse(bodies[1]) if token.type == "inline"]
    kinds = {child.type for token in inline for child in token.children or ()}
    assert kinds == {"text", "code_inline"}
    assert "html_block" not in {token.type for token in parser.parse(bodies[1])}
    assert OBEYED.search(bodies[1]) is None
