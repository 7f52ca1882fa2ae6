"""The model card of a training: a README.md as the Hugging Face Hub reads it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from traindyno.core.costs.projected_actual import HEADINGS, ProjectedActual
from traindyno.core.costs.quantity_text import number_text, seconds_text, usd_text
from traindyno.core.costs.receipt import Receipt
from traindyno.core.documents.places import code_span
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import suite_document
from traindyno.slices.training.plan import Training

PIPELINES = {
    Task.CAUSAL_LM: "text-generation",
    Task.MASKED_LM: "fill-mask",
    Task.SEQUENCE_CLASSIFICATION: "text-classification",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """``files``: what it is → its S3 URI. ``code``: the URIs of what ran."""

    training: Training
    suite: Suite
    result: RunResult
    receipt: Receipt
    compared: Sequence[ProjectedActual]
    files: Mapping[str, str]
    code: tuple[str, ...]

    def evaluations(self) -> Iterator[tuple[int, Mapping[str, float]]]:
        for each in self.result.measured.evaluations if self.result.measured else ():
            yield each.step, each.metrics


def model_card(trained: Trained) -> str:
    return "\n".join([*_front_matter(trained), *_sections(trained)]) + "\n"


def _front_matter(trained: Trained) -> Iterator[str]:
    """Values are JSON, which YAML reads too."""
    workload = trained.suite.workload
    yield "---"
    yield "license: unknown"
    if workload.task in PIPELINES:
        yield "library_name: transformers"
        yield f"pipeline_tag: {PIPELINES[workload.task]}"
    # The Hub refuses a card that names anything but Hub ids here
    if (
        workload.model is not None
        and workload.model.path is not None
        and not is_s3_uri(workload.model.path)
    ):
        yield f"base_model: {json.dumps(workload.model.path)}"
    if (
        workload.dataset is not None
        and workload.dataset.path is not None
        and not is_s3_uri(workload.dataset.path)
    ):
        yield f"datasets: {json.dumps([workload.dataset.path])}"
    yield "tags: [traindyno]"
    yield "---"


def _sections(trained: Trained) -> Iterator[str]:
    training, suite, result = trained.training, trained.suite, trained.result
    yield f"# {training.training_id}"
    yield ""
    yield (
        f"Trained by Traindyno: suite {code_span(suite.name)}, cell {training.cell.cell_id} "
        f"({code_span(training.cell.label)}), {suite.workload.examples:,} examples, task "
        f"{suite.workload.task.value}. "
        + (
            f"The cell is from the verdict of execution {training.verdict_of}."
            if training.verdict_of
            else ""
        )
    )
    yield ""
    yield (
        "`license` above is unknown: set it to what the licenses of the base model, the data and "
        "the code allow."
    )
    yield from ("", "## Files", "")
    yield from (f"- {what}: {code_span(uri)}" for what, uri in trained.files.items())
    yield from ("", "## Evaluation", "")
    loss = (
        result.measured.loss.points[-1] if result.measured and result.measured.loss.points else None
    )
    if loss is not None:
        yield f"- training loss at step {loss.step}: {number_text(loss.loss)}"
    for step, metrics in trained.evaluations():
        yield f"- evaluation at step {step}: " + ", ".join(
            f"{code_span(name)} {value:.4g}" for name, value in metrics.items()
        )
    yield from (
        "",
        "## Projected and actual",
        "",
        f"| {' | '.join(HEADINGS)} |",
        "|---" * len(HEADINGS) + "|",
    )
    yield from (f"| {' | '.join(each.texts())} |" for each in trained.compared)
    yield from (
        "",
        "## Receipt",
        "",
        "| job | end | instances | billed | cost |",
        "|---|---|---|---|---|",
    )
    for line in trained.receipt.lines:
        billed = None if line.billable_seconds is None else float(line.billable_seconds)
        place = f"{line.instance_count} × {line.instance}"
        cost = usd_text(trained.receipt.shown_usd(line))
        yield f"| {line.job_name} | {line.outcome} | {place} | {seconds_text(billed)} | {cost} |"
    yield from ("", "## Code and versions", "")
    yield from (f"- code: {code_span(uri)}" for uri in trained.code)
    yield from (
        f"- image: {code_span(image)}"
        for image in dict.fromkeys(each.image_uri for each in result.attempts)
        if image
    )
    facts = result.environment.facts if result.environment else {}
    versions = {"python": facts.get("python"), **facts.get("versions", {})}
    yield from (
        f"- {code_span(name)} {code_span(str(version))}"
        for name, version in versions.items()
        if version
    )
    yield from ("", "## Suite", "", "```json", json.dumps(suite_document(suite), indent=1), "```")
