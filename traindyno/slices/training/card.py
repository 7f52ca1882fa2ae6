"""The model card of a training, a README.md as the Hugging Face Hub reads it.

The lab writes it when the training has ended.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from traindyno.core.costs.projected_actual import HEADINGS, ProjectedActual
from traindyno.core.costs.quantity_text import number_text, seconds_text, usd_text
from traindyno.core.costs.receipt import Receipt, write_receipt
from traindyno.core.documents.places import code_span
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import (
    CODE_PREFIX,
    SUITES_PREFIX,
    checkpoints_prefix,
    is_s3_uri,
    s3_uri,
    saved_model_key,
    suite_key,
)
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite, suite_document
from traindyno.slices.training.plan import Training, parse_training, training_key
from traindyno.slices.training.report import compared
from traindyno.store.results import load_preparations, load_results
from traindyno.store.results_bucket import ResultsBucket

PIPELINES = {
    Task.CAUSAL_LM: "text-generation",
    Task.MASKED_LM: "fill-mask",
    Task.SEQUENCE_CLASSIFICATION: "text-classification",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A training that has ended, for its model card.

    ``files`` has the S3 URI of each kind of file. ``code`` has the URIs of the code that ran.
    """

    training: Training
    suite: Suite
    result: RunResult
    receipt: Receipt
    compared: Sequence[ProjectedActual]
    files: Mapping[str, str]
    code: tuple[str, ...]

    def evaluations(self) -> Iterator[tuple[int, Mapping[str, float]]]:
        for evaluation in self.result.measured.evaluations if self.result.measured else ():
            yield evaluation.step, evaluation.metrics


def card_key(execution_id: str) -> str:
    return f"{SUITES_PREFIX}{execution_id}/README.md"


def keep_card(bucket: ResultsBucket, execution_id: str) -> None:
    """Write the card of a training that has trained the whole workload."""
    training = bucket.find_as(training_key(execution_id), parse_training)
    result = next(iter(load_results(bucket, execution_id)), None) if training else None
    if training is None or result is None or result.outcome is not Outcome.COMPLETED:
        return
    own = write_receipt([*load_preparations(bucket, execution_id), result])
    lines = (*training.earlier_lines, *own.lines)
    amounts = [line.usd for line in lines]
    known = sum(filter(None, amounts), Decimal(0))
    total = None if None in amounts else known
    copies = bucket.list_keys(f"{CODE_PREFIX}{execution_id}/")
    trained = Trained(
        training=training,
        suite=bucket.read_as(suite_key(execution_id), read_stored_suite),
        result=result,
        receipt=Receipt(lines=lines, known_usd=known, total_usd=total, phases=own.phases),
        compared=compared(training, result),
        files=kept_files(bucket, result),
        code=tuple(s3_uri(bucket.name, key) for key in copies if key.endswith(".tar.gz")),
    )
    bucket.write(card_key(execution_id), model_card(trained).encode(), "text/markdown")


def kept_files(bucket: ResultsBucket, result: RunResult) -> dict[str, str]:
    """S3 URIs of the model, where it doesn't expire, and of the checkpoints, which do.

    The best model is in the model's folder ``best``.
    """
    place = (result.run.execution_id, result.run.run_id)
    last = result.attempts[-1].job_name
    model = saved_model_key(*place, last, is_kept=True)
    places = {"model": model} if any(bucket.list_keys(model)) else {}
    places["checkpoints"] = checkpoints_prefix(*place)
    return {what: s3_uri(bucket.name, key) for what, key in places.items()}


def model_card(trained: Trained) -> str:
    return "\n".join([*_front_matter(trained), *_sections(trained)]) + "\n"


def _front_matter(trained: Trained) -> Iterator[str]:
    """The card's metadata. Values are JSON, which YAML reads too."""
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
    yield from _introduction(trained)
    yield from ("", "## Files", "")
    yield from (f"- {what}: {code_span(uri)}" for what, uri in trained.files.items())
    yield from ("", "## Evaluation", "")
    yield from _evaluation(trained)
    yield from (
        "",
        "## Projected and actual",
        "",
        f"| {' | '.join(HEADINGS)} |",
        "|---" * len(HEADINGS) + "|",
    )
    yield from (f"| {' | '.join(figure.texts())} |" for figure in trained.compared)
    yield from (
        "",
        "## Receipt",
        "",
        "| job | end | instances | billed | cost |",
        "|---|---|---|---|---|",
    )
    yield from _receipt_rows(trained.receipt)
    yield from ("", "## Code and versions", "")
    yield from _versions(trained)
    suite = json.dumps(suite_document(trained.suite), indent=1)
    yield from ("", "## Suite", "", "```json", suite, "```")


def _introduction(trained: Trained) -> Iterator[str]:
    training = trained.training
    suite = trained.suite
    origin = ""
    if training.verdict_of:
        origin = f"The cell is from the verdict of execution {training.verdict_of}."
    yield f"# {training.training_id}"
    yield ""
    yield (
        f"Trained by Traindyno: suite {code_span(suite.name)}, cell {training.cell.cell_id} "
        f"({code_span(training.cell.label)}), {suite.workload.examples:,} examples, task "
        f"{suite.workload.task.value}. {origin}"
    )
    yield ""
    yield (
        "`license` above is unknown: set it to what the licenses of the base model, the data and "
        "the code allow."
    )


def _evaluation(trained: Trained) -> Iterator[str]:
    measured = trained.result.measured
    if measured and measured.loss.points:
        last = measured.loss.points[-1]
        yield f"- training loss at step {last.step}: {number_text(last.loss)}"
    for step, metrics in trained.evaluations():
        yield f"- evaluation at step {step}: " + ", ".join(
            f"{code_span(name)} {value:.4g}" for name, value in metrics.items()
        )


def _receipt_rows(receipt: Receipt) -> Iterator[str]:
    for line in receipt.lines:
        billed = None if line.billable_seconds is None else float(line.billable_seconds)
        place = f"{line.instance_count} × {line.instance}"
        cost = usd_text(receipt.shown_usd(line))
        yield f"| {line.job_name} | {line.outcome} | {place} | {seconds_text(billed)} | {cost} |"


def _versions(trained: Trained) -> Iterator[str]:
    result = trained.result
    yield from (f"- code: {code_span(uri)}" for uri in trained.code)
    images = dict.fromkeys(attempt.image_uri for attempt in result.attempts)
    yield from (f"- image: {code_span(image)}" for image in images if image)
    facts = result.facts
    versions = {"python": facts.get("python"), **facts.get("versions", {})}
    yield from (
        f"- {code_span(name)} {code_span(str(version))}"
        for name, version in versions.items()
        if version
    )
