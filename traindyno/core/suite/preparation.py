"""Tokens that a suite's cells share: which cells need which, under what content key, and the jobs that make them."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from traindyno.core.instances.instance_types import LOCAL_PREFIX
from traindyno.core.suite.choices import InputMode
from traindyno.core.suite.suite import (
    Cell,
    DatasetFormat,
    Purchase,
    Run,
    Settings,
    Strategy,
    Suite,
    Task,
    Tokens,
    Workload,
)
from traindyno.core.suite.suite_converter import suite_converter

LOCAL_INSTANCE = f"{LOCAL_PREFIX}cpu"
# Four cores and 16 GiB; of the small CPU types, one whose quota has a code, so that it is checked before it is needed.
REMOTE_INSTANCE = "ml.m7i.xlarge"
LABEL = "data preparation"
RUN_ID_PREFIX = "prepare-"
KEY_DIGITS_IN_NAMES = 8
TRIAL = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSet:
    """Tokens that some cells of the suite read. ``key`` is empty in a plan that only counts; ``is_ready``: they were
    made before."""

    packing: bool
    key: str = ""
    is_ready: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What decides tokens beside the suite itself: the code and image that make them, and what the names stand for."""

    code: str
    image: str
    data: str
    tokenizer: str


def needs_preparation(workload: Workload) -> bool:
    """A script reads its data as it is, synthetic data is made by arithmetic, and a stream is tokenised as it flows."""
    dataset = workload.dataset
    return (
        workload.task is not Task.SCRIPT
        and dataset is not None
        and dataset.format is not DatasetFormat.SYNTHETIC
        and dataset.input_mode is not InputMode.STREAM
    )


def needed_tokens(suite: Suite, cells: Iterable[Cell]) -> tuple[TokenSet, ...]:
    """One for each distinct way in which the cells want the dataset tokenised."""
    if not needs_preparation(suite.workload):
        return ()
    wanted = dict.fromkeys(is_packed(cell.settings, suite.workload) for cell in cells)
    return tuple(TokenSet(packing=packing) for packing in wanted)


def is_packed(settings: Settings, workload: Workload) -> bool:
    """Text to be classified is never packed, whatever the setting says."""
    return settings.packing and workload.task is not Task.SEQUENCE_CLASSIFICATION


def tokens_key(workload: Workload, *, packing: bool, origin: Origin) -> str:
    """64 hexadecimal digits of all that decides the tokens."""
    document: dict[str, Any] = suite_converter().unstructure(workload)
    decides = ("task", "examples", "tokenizer", "dataset", "sequence_length", "label_count")
    content: dict[str, Any] = {name: document.get(name) for name in decides}
    content["dataset"] = {name: value for name, value in document["dataset"].items() if name != "input_mode"}
    if workload.tokenizer is None and workload.model is not None:
        content["tokenizer"] = {"path": workload.model.path, "revision": workload.model.revision}
    content |= {"packing": packing, "origin": suite_converter().unstructure(origin)}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def preparation_instance(suite: Suite, cells: Iterable[Cell]) -> str:
    """On this machine where any cell runs here: what is simulated makes no tokens that a real run could read."""
    is_local = any(cell.settings.instance.startswith(LOCAL_PREFIX) for cell in cells)
    return suite.preparation.instance or (LOCAL_INSTANCE if is_local else REMOTE_INSTANCE)


def preparation_seconds(suite: Suite) -> int:
    return suite.preparation.max_seconds or suite.limits.max_job_seconds


def preparation_run(token_set: TokenSet, *, instance: str, execution_id: str) -> Run:
    settings = Settings(instance=instance, strategy=Strategy.SINGLE, packing=token_set.packing)
    short = token_set.key[:KEY_DIGITS_IN_NAMES]
    return Run(
        run_id=f"{RUN_ID_PREFIX}{short}",
        execution_id=execution_id,
        trial=TRIAL,
        cell=Cell(cell_id=short, label=LABEL, settings=settings),
        tokens=Tokens(key=token_set.key),
    )


def terms_of(run: Run, suite: Suite) -> Suite:
    """The suite as it holds for this run's job: a preparation is bought on demand, in the image of its instance."""
    if not run.is_preparation:
        return suite
    return replace(
        suite,
        purchase=Purchase.ON_DEMAND,
        warm_pool_seconds=0,
        training_plans={},
        instance_preferences={},
        limits=replace(suite.limits, max_job_seconds=preparation_seconds(suite)),
        workload=replace(suite.workload, image=None),
    )
