"""The model card has what the Hub accepts in its front matter, and the figures of its receipt and
comparison.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from markdown_it import MarkdownIt
from typer.testing import CliRunner

from tests.sentences import Snapshot
from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.core.documents.test_places import CHARACTERS
from tests.unit.core.documents.test_visible_text import OBEYED
from tests.unit.lab_in_memory import EXECUTION, SETTINGS, MemoryExecutions, MemoryLab
from tests.unit.planned_lab import judge_execution
from tests.unit.run_samples import completed_result, make_cell
from tests.unit.slices.training.test_model_folder import archive_of
from tests.unit.slices.training.test_report import EARLIER, PROJECTED, trained
from tests.unit.suites import small_document, small_suite
from traindyno.cli.lab_choice import LabChoice
from traindyno.cli.main import commands
from traindyno.core.costs.projected_actual import ProjectedActual
from traindyno.core.costs.receipt import write_receipt
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import checkpoints_prefix, saved_model_key, suite_key
from traindyno.core.step_log.fields import Evaluation
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.sagemaker.request import build_training_job_request
from traindyno.slices.training.card import Trained, card_key, model_card
from traindyno.slices.training.plan import Training, parse_training, training_key
from traindyno.slices.training.report import compared
from traindyno.store.results import load_results


def watched(lab: MemoryLab, folder: Path) -> str:
    """What `watch` says of the training, which has ended."""
    executions = MemoryExecutions()
    target = replace(target_of(lab), executions=executions)
    executions.start(EXECUTION, {})
    executions.end(EXECUTION, "SUCCEEDED")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LabChoice, "find_target", lambda _: target)
        answer = CliRunner().invoke(commands, ["watch", EXECUTION, "--output", str(folder)])
    assert answer.exit_code == 0, answer.output
    return answer.output


def test_the_lab_keeps_model_and_card_without_a_client(tmp_path: Path) -> None:
    """With the jobs of the executions before. A script's own best/best.json is not read."""
    line = write_receipt([completed_result(make_cell(), 1)]).lines[0]
    lab = trained(**EARLIER, earlier_lines=(replace(line, job_name="before"),))
    (result,) = load_results(lab.bucket, EXECUTION)
    ids = (EXECUTION, result.run.run_id)
    lab.bucket.write_json(f"{checkpoints_prefix(*ids)}state/best/best.json", {"epoch": 3})
    model = saved_model_key(*ids, result.attempts[-1].job_name, is_kept=True)
    lab.bucket.write(model, archive_of(weights=b"the model"), "")
    judge_execution(lab)
    card = lab.bucket.read(card_key(EXECUTION)).decode()
    assert f"- model: `s3://results/{model}`" in card
    assert card.index("| before | completed |") < card.index(f"| {result.attempts[-1].job_name} |")
    assert f"model: s3://results/{model}" in watched(lab, tmp_path).replace("\n", "")
    assert (tmp_path / f"{EXECUTION}.md").read_text() == card
    assert (tmp_path / "weights").read_bytes() == b"the model"


def test_the_job_of_a_training_writes_its_model_to_a_lasting_place() -> None:
    """As `run` keeps the models of trials, which expire."""
    suite = small_suite()
    for chains in (False, True):
        chosen = replace(suite, limits=replace(suite.limits, chain_jobs=chains))
        run = next(iter(trial_runs(EXECUTION, chosen.cells, [1])))
        request = build_training_job_request(run, chosen, attempt=1, settings=SETTINGS)
        place = request["OutputDataConfig"]["S3OutputPath"]
        key = saved_model_key(EXECUTION, run.run_id, request["TrainingJobName"], is_kept=chains)
        assert f"{place}{request['TrainingJobName']}/output/model.tar.gz" == f"s3://results/{key}"
        assert key.startswith("trained/" if chains else "runs/")


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
    cell, _ = suite.cells
    result = completed_result(cell, 1, suite=suite)
    card = card_of(Training(training_id="a", execution_id="a", cell=cell, steps=9), suite, result)
    front = yaml.safe_load(card.split("---\n")[1])
    assert {name: front[name] for name in ("base_model", "datasets") if name in front} == expected


def test_amounts_below_a_dollar_are_not_rounded_to_whole_cents(snapshot: Snapshot) -> None:
    """4 s at $1.20 an hour."""
    lab = trained(projected=PROJECTED)
    training = lab.bucket.read_as(training_key(EXECUTION), parse_training)
    (result,) = load_results(lab.bucket, EXECUTION)
    cheap = replace(
        result,
        attempts=tuple(replace(attempt, billable_seconds=4.0) for attempt in result.attempts),
    )
    suite = lab.bucket.read_as(suite_key(EXECUTION), read_stored_suite)
    card = card_of(training, suite, cheap, compared(training, cheap))
    assert "| 4.00 s | $0.00133 |" in card
    snapshot(card)


def test_text_of_a_job_is_text_in_its_card() -> None:
    """Names of metrics and versions are the script's."""
    hostile = "".join(CHARACTERS.values())
    suite = parse_suite(small_document())
    cell, _ = suite.cells
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
    bodies = [
        card_of(training, suite, published).split("---\n", 2)[2] for published in (plain, result)
    ]
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
