"""The jobs before a suite's first run: they make its tokens, or copy its model from the Hub."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.plain import id_of, plain_values
from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.run.processes import (
    adapters_of,
    planned_batch_size,
    stage_counts,
    tensor_divisions,
)
from traindyno.core.run.settings import Settings
from traindyno.core.run.tokens import MANIFEST, MOST_HELD_OUT, TokenSet
from traindyno.core.run.workload import Model, Workload
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.choices import DatasetFormat, InputMode, Strategy, Task
from traindyno.core.suite.suite import Suite

TOKENS_MARKER = Format(name="tokens marker", version=1)
LOCAL_INSTANCE = f"{LOCAL_PREFIX}cpu"
# Four cores and 16 GiB; a small CPU type whose quota has a known code, so that the quota can be
# checked.
REMOTE_INSTANCE = "ml.m7i.xlarge"
COMMIT = re.compile(r"[0-9a-f]{40}")
# A run that sets its own number of steps, and has more of them, begins another epoch.
STEPS_OF_SHORT_RUNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TokensMarker:
    """Mark of prepared tokens. ``made_at`` is in epoch seconds."""

    s3_uri: str
    made_at: float


def tokens_marker_document(marker: TokensMarker) -> dict[str, Any]:
    return TOKENS_MARKER.mark(to_document(marker))


def parse_tokens_marker(document: Mapping[str, Any]) -> TokensMarker:
    """Read the mark of prepared tokens. Raises VersionUnknown."""
    return from_document(TOKENS_MARKER.read(document), TokensMarker)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Inputs of the tokens beside the suite: the code and image that make them, and the content of
    the data.
    """

    code: str
    image: str
    data: str
    tokenizer: str


def needs_preparation(workload: Workload) -> bool:
    """Whether tokens are made before the runs: not for scripts, synthetic data and streamed
    data.
    """
    dataset = workload.dataset
    return (
        workload.task is not Task.SCRIPT
        and dataset is not None
        and dataset.format is not DatasetFormat.SYNTHETIC
        and dataset.input_mode is not InputMode.STREAM
    )


def needed_tokens(suite: Suite) -> tuple[TokenSet, ...]:
    """One token set for each distinct way in which the cells need the dataset tokenised, and the
    copy of the model.

    Runs read a model of the Hub from the lab's bucket.
    """
    workload = suite.workload
    # A script loads its own model, and a configuration gives random values.
    path = workload.model.path if workload.model and workload.task is not Task.SCRIPT else None
    copies = () if path is None or is_s3_uri(path) else (TokenSet(),)
    if not needs_preparation(workload):
        return copies
    wanted: dict[bool, list[Cell]] = {}
    for cell in suite.cells:
        wanted.setdefault(is_packed(cell.settings, workload), []).append(cell)
    sets = (
        TokenSet(
            packing=packing,
            sequences=needed_sequences(suite, readers),
            divisions=tensor_divisions(cell.settings for cell in suite.cells),
            stage_counts=stage_counts(cell.settings for cell in suite.cells),
            adapters=adapters_of(cell.settings for cell in suite.cells),
        )
        for packing, readers in wanted.items()
    )
    return (*sets, *copies)


def is_packed(settings: Settings, workload: Workload) -> bool:
    """Text for classification is never packed; the setting has no effect on it."""
    return settings.packing and workload.task is not Task.SEQUENCE_CLASSIFICATION


def tokens_key(workload: Workload, token_set: TokenSet, origin: Origin) -> str:
    """64 hexadecimal digits of all inputs of the tokens, and of the divisions and adapters that the
    model is checked for.
    """
    document: dict[str, Any] = plain_values(workload)
    decides = ("task", "examples", "tokenizer", "dataset", "sequence_length", "label_count")
    content: dict[str, Any] = {name: document.get(name) for name in decides}
    if token_set.sequences is not None:
        content["examples"] = token_set.sequences
    content["dataset"] = {
        name: value for name, value in document["dataset"].items() if name != "input_mode"
    }
    model = workload.model
    if (
        workload.task is Task.SEQUENCE_CLASSIFICATION
        and model is not None
        and model.path is not None
    ):
        content["head"] = {
            "path": model.path,
            "revision": model.revision,
        }  # it may number the labels
    if workload.tokenizer is None and workload.model is not None:
        content["tokenizer"] = {"path": workload.model.path, "revision": workload.model.revision}
    names = ("divisions", "stage_counts", "adapters")
    asked = {name: plain_values(value) for name in names if (value := getattr(token_set, name))}
    made = {
        "packing": token_set.packing,
        "format": MANIFEST.version,
        "origin": plain_values(origin),
    }
    return id_of(
        {**content, **made, "asked": {"model": document.get("model"), **asked} if asked else {}}
    )


def model_key(workload: Workload, *, execution_id: str, is_local: bool) -> str:
    """64 hexadecimal digits of the model on the Hub.

    A branch or a tag may move, so that only a commit is reused by other executions. ``is_local``
    says that the copying job runs on this machine; where it does not, it may be simulated.
    """
    assert workload.model is not None
    model = workload.model
    content = {"model": model.path, "revision": model.revision, "is_local": is_local}
    return id_of({**content, "execution": None if names_commit(model) else execution_id})


def names_commit(model: Model) -> bool:
    return COMMIT.fullmatch(model.revision or "") is not None


def preparation_instance(suite: Suite) -> str:
    """Instance type of the preparation: this machine's type if any cell runs here.

    A simulated job makes no tokens that a real run can read.
    """
    is_local = any(cell.settings.instance.startswith(LOCAL_PREFIX) for cell in suite.cells)
    return suite.preparation.instance or (LOCAL_INSTANCE if is_local else REMOTE_INSTANCE)


def preparation_seconds(suite: Suite) -> int:
    return suite.preparation.max_seconds or suite.limits.max_job_seconds


def preparation_settings(instance: str) -> Settings:
    """Settings of the preparation's job: one process on one instance."""
    return Settings(instance=instance, strategy=Strategy.SINGLE)


def needed_sequences(suite: Suite, cells: Iterable[Cell]) -> int | None:
    """Sequences that the runs need.

    None where all examples of the workload are needed, or where a cell's batch is unknown. Rows to
    classify may be sorted by their label, so that a part of the examples could lack a class.
    """
    if suite.workload.task is Task.SEQUENCE_CLASSIFICATION:
        return None
    batches = [planned_batch_size(cell.settings) for cell in cells]
    known = [batch for batch in batches if batch is not None]
    if len(known) < len(batches):
        return None
    measurement = suite.job_measurement
    steps = measurement.max_steps
    if measurement.least_seconds is not None:
        steps = max(steps, STEPS_OF_SHORT_RUNS)
    needed = steps * max(known, default=0)
    dataset = suite.workload.dataset
    if measurement.evaluates and (dataset is None or dataset.evaluation_split is None):
        needed += MOST_HELD_OUT
    return needed if 0 < needed < suite.workload.examples else None
