"""Prepared tokens: what one job makes for the runs of a suite, and how a reader knows them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.versions import Format, VersionUnknown
from traindyno.core.run.processes import TensorDivision
from traindyno.core.run.settings import Adapter

TOKENS_MANIFEST = "traindyno-tokens.json"
# Version 2: a text of causal-lm is as its tokenizer gives it, with one end token behind it, and
# packed documents are known by their offsets. Version 3: conversations have a mask of the tokens
# that count in the loss.
MANIFEST = Format(name=TOKENS_MANIFEST, version=3)
LABEL = "data preparation"
STAGE_LABEL = "model staging"
STAGE_ID = "stage-"
KEY_DIGITS_IN_NAMES = 8
# At most this many training sequences are held out if there is no evaluation split.
MOST_HELD_OUT = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """A dataset's tokens by their content key; ``s3_uri`` is the folder that holds them, None
    before they are made.
    """

    key: str
    s3_uri: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSet:
    """What one job makes: tokens that some cells of the suite read, for which it checks the model
    too, or a copy of the model.
    """

    #: Whether the tokens are packed; None for the job that copies the model to the lab's bucket.
    packing: bool | None = None
    #: Sequences of the training part; None for the workload's examples.
    sequences: int | None = None
    #: Divisions of the model's layers in the suite's cells, for the check of the model.
    divisions: tuple[TensorDivision, ...] = ()
    #: Numbers of stages in the cells that cut the model into stages.
    stage_counts: tuple[int, ...] = ()
    #: The distinct adapters of the cells.
    adapters: tuple[Adapter, ...] = ()
    #: The content key of the tokens, or of the model; empty in a plan that only counts.
    key: str = ""
    #: A job with this key completed before.
    is_ready: bool = False

    @property
    def stages_model(self) -> bool:
        return self.packing is None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataPreparation(TokenSet):
    """The job that makes one set of tokens before the first run; its attempts are training jobs,
    like a run's.

    It also checks the model, with ``divisions``, ``stage_counts`` and ``adapters``, before any
    accelerator starts. A job that makes no tokens copies the model.
    """

    execution_id: str
    #: The type of the one instance that the job uses.
    instance: str

    @property
    def preparation_id(self) -> str:
        return f"{STAGE_ID if self.stages_model else 'prepare-'}{self.short_key}"

    @property
    def label(self) -> str:
        return label_of(self.preparation_id)

    @property
    def short_key(self) -> str:
        return self.key[:KEY_DIGITS_IN_NAMES]


def tokens_manifest(key: str, parts: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
    """The manifest of prepared tokens.

    ``parts`` has the number of ``sequences`` and ``tokens`` for train and evaluation.
    """
    return MANIFEST.mark(
        {"key": key, "parts": {name: dict(counts) for name, counts in parts.items()}}
    )


def describe_mismatch(manifest: Mapping[str, Any] | None, *, key: str) -> str | None:
    """Why these are not the tokens of this key; None if they are."""
    if manifest is None:
        return f"it holds no {TOKENS_MANIFEST}; expected tokens of key {key}"
    try:
        stored_key = MANIFEST.read(manifest).get("key")
    except VersionUnknown as error:
        return str(error)
    return (
        None
        if stored_key == key
        else f"its {TOKENS_MANIFEST} has key {stored_key}; expected key {key}"
    )


def label_of(preparation_id: str) -> str:
    """The name of the job in the display and the receipt."""
    return STAGE_LABEL if preparation_id.startswith(STAGE_ID) else LABEL
