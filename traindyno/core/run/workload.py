"""The workload of a suite: its task, model, tokenizer, data and size, or a user's own script."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from traindyno.core.documents.field_description import POSITIVE, Bound, describe, described
from traindyno.core.documents.plain import plain_values
from traindyno.core.documents.stored import JsonValue
from traindyno.core.suite.choices import DatasetFormat, InputMode, LossOn, Task, TooLong

# Bounds that only keep numbers within what a database row and 64 bits can hold.
EXAMPLES = Bound(least=1, most=10**15)
TOKENS = Bound(least=1, most=10**9)
STEPS = Bound(least=1, most=10**9)
#: Fields of a dataset that conversations alone have
OF_CHAT = ("chat_template", "chat_template_kwargs", "loss_on", "too_long")
CHANNELS = "workload.channels."


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """Exactly one of ``path`` (Hub id, S3 URI or local folder) and ``config`` (random weights) is
    set.

    ``config`` is a transformers configuration with its ``model_type``, for example
    ``{"model_type": "gpt2", "n_layer": 6, "n_embd": 256}``.
    """

    path: str | None = None
    config: Mapping[str, Any] | None = None
    revision: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokenizer:
    """Exactly one of ``path`` and ``train_vocabulary_size`` is set; the latter trains one on the
    dataset itself.
    """

    path: str | None = None
    revision: str | None = None
    train_vocabulary_size: int | None = described(
        None, "tokens of a tokenizer that is trained on the dataset", bound=TOKENS
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The data to train on.

    ``path`` is a Hub id, an S3 URI, or a local file or folder (staged to S3 before the suite
    starts).
    """

    path: str | None = None
    format: DatasetFormat = DatasetFormat.AUTO
    name: str | None = None
    revision: str | None = None
    split: str = "train"
    evaluation_split: str | None = None
    text_column: str = "text"
    label_column: str = "label"
    input_mode: InputMode = InputMode.FILE
    #: Template of conversations: a file, or a name of the tokenizer's dictionary of templates
    chat_template: str | None = None
    chat_template_kwargs: Mapping[str, JsonValue] = field(default_factory=dict)
    loss_on: LossOn = LossOn.ANSWERS
    too_long: TooLong = TooLong.CUT


@dataclass(frozen=True, slots=True, kw_only=True)
class FullRun:
    """The schedule of the whole training, where it differs from the schedule of the short
    trials.
    """

    checkpoint_every_minutes: float | None = described(
        None,
        "minutes between two checkpoints of the full run; each costs what one costs in a trial, "
        "and an interrupted run starts again from the last one",
        bound=POSITIVE,
        default="as often as in the trials",
    )
    evaluate_every_steps: int | None = described(
        None,
        (
            "optimizer steps between two evaluations of the full run; each costs what one costs "
            "in a trial"
        ),
        bound=STEPS,
        default="as often as in the trials",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """What is trained."""

    task: Task = field(
        metadata=describe(
            "what the model learns; script runs your own script",
            default="script, if there is a source",
        )
    )
    examples: int = field(
        metadata=describe(
            "examples of the whole training, the same for every cell; the verdict is for this work",
            bound=EXAMPLES,
            default="found: one epoch of local data; required for a script",
        )
    )
    model: Model | None = described(
        None,
        "a Hub id, {path: …} (Hub id, S3 URI, local folder), or {config: {model_type: gpt2, …}}",
    )
    tokenizer: Tokenizer | None = described(
        None,
        "{path: …, revision: …}, or {train_vocabulary_size: 8192}",
        default="the model's own; none with model.config",
    )
    dataset: Dataset | None = described(
        None,
        (
            "{path, format, name, revision, split, evaluation_split, text_column, label_column, "
            "input_mode}; conversations also {chat_template, chat_template_kwargs, loss_on, "
            "too_long}"
        ),
    )
    sequence_length: int | None = described(
        None,
        "the length of a sequence",
        bound=TOKENS,
        unit="tokens",
        default="found: what the local texts and the model's positions allow",
    )
    label_count: int | None = described(
        None,
        "classes, for sequence-classification",
        bound=Bound(least=2, most=10**6),
        default="found: the labels of local data, else of the model's head",
    )
    source: str | None = described(None, "for script: the folder or S3 tarball that holds the code")
    entry_point: str | None = described(
        None,
        "for script: the .py file in source that is run",
        default="found: train.py, or the only program",
    )
    hyperparameters: Mapping[str, JsonValue] = described(
        {}, "for script: the arguments that every cell gets"
    )
    trust_remote_code: bool = described(
        False,
        "whether jobs may run the Python code that is stored with the model and the tokenizer "
        "(transformers' auto_map); plan and deploy never run it",
    )
    hub_token_secret: str | None = described(
        None,
        (
            "for gated models: the ARN of the Secrets Manager secret that holds your Hugging "
            "Face token"
        ),
    )
    image: str | None = described(
        None,
        "a container image of your own, or repository:tag of one of AWS's",
        default="the lab's",
    )
    environment: Mapping[str, str] = described({}, "environment variables of every job")
    channels: Mapping[str, str] = described(
        {}, "further inputs beside the dataset: channel name → S3 URI or local path"
    )
    full_run: FullRun | None = described(
        None,
        "the schedule of the whole training: {checkpoint_every_minutes, evaluate_every_steps}; a "
        "built-in task then writes a checkpoint and evaluates in the middle of each trial, so "
        "that their cost is measured",
        default="what the trials show",
    )


def workload_paths(workload: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Every path of data, tokenizer, model and channels in a workload's document, each with its
    field in the suite.
    """
    for section in ("dataset", "tokenizer", "model"):
        part = workload.get(section)
        if isinstance(part, str):
            yield f"workload.{section}", part
        elif isinstance(part, Mapping) and isinstance(part.get("path"), str):
            yield f"workload.{section}.path", part["path"]
        if isinstance(part, Mapping) and isinstance(part.get("chat_template"), str):
            yield f"workload.{section}.chat_template", part["chat_template"]
    channels = workload.get("channels")
    for name, path in channels.items() if isinstance(channels, Mapping) else ():
        if isinstance(path, str):
            yield f"{CHANNELS}{name}", path


def workload_document(workload: Workload) -> dict[str, Any]:
    """What a job does, and so without the schedule of the full run, from which the lab only
    projects.

    Of the fields that conversations alone have it names those that differ from their defaults: an
    execution of earlier code would refuse them all.
    """
    document: dict[str, Any] = plain_values(workload)
    dataset = document.get("dataset")
    if dataset is not None:
        usual = plain_values(Dataset())
        document["dataset"] = {
            name: value
            for name, value in dataset.items()
            if name not in OF_CHAT or value != usual.get(name)
        }
    return {name: value for name, value in document.items() if name != "full_run"}
