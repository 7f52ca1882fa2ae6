"""What the data and the model of a built-in task answer: the task, columns, examples, length and
labels that a suite leaves out.
"""

import json
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traindyno.api.local_data import is_small, local_data
from traindyno.api.local_paths import find_local, path_problem
from traindyno.api.model_check import base_of, read_configuration
from traindyno.api.suite_draft import SuiteDraft
from traindyno.api.training_code import has_training_code, missing_libraries
from traindyno.core.documents.problems import one_of
from traindyno.core.run.data_formats import TOKENISED
from traindyno.core.run.saved_model import architectures, longest_sequence, tasks_of_heads
from traindyno.core.run.workload import OF_CHAT, Dataset
from traindyno.core.suite.choices import DatasetFormat, Task
from traindyno.travelling_files import listed

if TYPE_CHECKING:
    from training.data.survey import Columns, Survey  # pyarrow: not everybody who plans has it

#: English has 4 to 5 bytes for each token, Chinese about 3: a length that follows from 3 cuts few
#: texts off.
LEAST_BYTES_PER_TOKEN = 3
BYTES_PER_TOKEN = 4
SPECIAL_TOKENS = 2
SHORTEST = 16
LONGEST_OF_MODEL = 1024
#: What the rows of the data say
OF_DATA = tuple(f"workload.{name}" for name in ("examples", "sequence_length", "label_count"))
#: Padding is worth a word where texts fill less than this share of the sequences' tokens.
MOSTLY_PADDING = 0.5
BUILT_IN = [task.value for task in Task if task is not Task.SCRIPT]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    """A column that the data must have: its field in the suite, its usual name, what it holds."""

    field: str
    usual: str
    holds: str


TEXT_COLUMN = _Column(field="text_column", usual="text", holds="texts")
LABEL_COLUMN = _Column(field="label_column", usual="label", holds="labels")


def fill_built_in(draft: SuiteDraft, workload: dict[str, Any]) -> None:
    """Fill what the workload of a built-in task leaves out."""
    named = workload.get("dataset")
    config = _model_config(workload.get("model"), draft.folder)
    if "task" not in workload:
        _fill_task(draft, named, config, OF_DATA if named is not None else ())
    with_labels = workload.get("task") == Task.SEQUENCE_CLASSIFICATION
    wanted = {"examples", "sequence_length", *(["label_count"] if with_labels else [])}
    path = named.get("path") if isinstance(named, Mapping) else None
    if not wanted <= workload.keys():
        problem = path_problem(path, draft.folder) if isinstance(path, str) else None
        if named is None:
            message = "got nothing, expected a file or folder, an s3:// URI or a Hub id"
            draft.refuse("workload.dataset", message, leaves_open=OF_DATA)
        elif problem is not None:
            draft.refuse("workload.dataset.path", problem, leaves_open=OF_DATA)
            return
    if not isinstance(named, Mapping):
        return
    if workload.get("task") not in BUILT_IN or _dataset(named) is None:
        draft.open_paths |= {*OF_DATA}  # its problem is told elsewhere, and answers these
    elif isinstance(named.get("path"), str):
        workload["dataset"] = dict(named)
        with local_data(named["path"], draft.folder) as root:
            can_read = not missing_libraries() and has_training_code()
            is_tokenised = root is not None and (root / TOKENISED).exists()
            if root is not None and can_read and not is_tokenised and is_small(root):
                _fill_from_data(draft, workload, root, config)
    labels = config.get("id2label")
    if (
        workload.get("task") == Task.SEQUENCE_CLASSIFICATION
        and isinstance(labels, Mapping)
        and len(labels) > 1
    ):
        draft.give("workload.label_count", len(labels), "the labels of the model's head")


def _fill_task(
    draft: SuiteDraft, named: object, config: Mapping[str, Any], leaves_open: Iterable[str]
) -> None:
    """The task that the model was saved with; else that of conversations."""
    tasks = tasks_of_heads(config)
    names = architectures(config)
    if len(tasks) == 1:
        draft.give("workload.task", tasks.pop().value, f"the model is a {names[0]}")
        return
    if isinstance(named, Mapping) and (chat := chat_columns(named, draft.folder)):
        reason = f"the data has {' and '.join(chat)}"
        draft.give("workload.task", Task.CAUSAL_LM.value, reason)
        return
    message = f"got nothing, expected {one_of(Task)}"
    if names:
        message += f"; the model is a {names[0]}, which no built-in task trains as it is"
    draft.refuse("workload.task", message, leaves_open=leaves_open)


def _fill_from_data(
    draft: SuiteDraft, workload: dict[str, Any], root: Path, config: Mapping[str, Any]
) -> None:
    """Reads the data as the job will read it, so that what is wrong with it is known before."""
    from training.data.survey import (  # noqa: PLC0415  (imports pyarrow)
        find_columns,
        require_texts,
        survey,
        survey_chat,
    )
    from training.errors import WorkloadError  # noqa: PLC0415

    with_labels = workload["task"] == Task.SEQUENCE_CLASSIFICATION
    try:
        dataset = _dataset(workload["dataset"])
        columns = None if dataset is None else find_columns(dataset, root)
        if columns is not None and _is_chat(draft, workload, columns):
            dataset = _dataset(workload["dataset"])
            if dataset is not None and not {"examples", "sequence_length"} <= workload.keys():
                _fill_examples_of_chat(draft, workload, survey_chat(dataset, root), config)
            return
        if columns is not None and not _fill_columns(
            draft, workload["dataset"], columns, with_labels=with_labels
        ):
            return
        dataset = _dataset(workload["dataset"])
        if dataset is None:
            return
        if not with_labels:
            require_texts(dataset, root)
            if {"examples", "sequence_length"} <= workload.keys():
                return
        surveyed = survey(dataset, root, with_labels=with_labels)
    except WorkloadError as error:
        draft.refuse("workload.dataset.path", str(error), leaves_open=OF_DATA)
        return
    if with_labels:
        _fill_label_count(draft, workload, surveyed, dataset.path)
    _fill_length(draft, workload, surveyed, config)
    if with_labels:
        draft.cautions += _length_cautions(
            draft.document, surveyed, workload.get("sequence_length")
        )
        draft.give("workload.examples", surveyed.rows, f"one epoch: the rows of {dataset.path}")
    else:
        _fill_examples(draft, workload, surveyed)


def _fill_label_count(
    draft: SuiteDraft, workload: Mapping[str, Any], surveyed: "Survey", path: str | None
) -> None:
    from training.data.survey import label_problem  # noqa: PLC0415  (imports pyarrow)

    labels = [label.value for label in surveyed.labels]
    count = len(labels)
    if count < 2 and "label_count" not in workload:
        named = ", ".join(map(repr, labels))
        draft.refuse(
            "workload.label_count",
            f"got one label only in {path} ({named}), expected at least two",
        )
        return
    why = f"the labels of {path}"
    if {str(label) for label in labels} == {str(1 + number) for number in range(count)}:
        why += f" are 1 to {count}, and classes count from 0"
        count += 1
    draft.give("workload.label_count", count, why)
    draft.cautions += surveyed.cautions
    given = workload["label_count"]
    problem = label_problem(surveyed, given) if isinstance(given, int) else None
    if problem:
        draft.refuse("workload.label_count", problem)


def _fill_examples(draft: SuiteDraft, workload: Mapping[str, Any], surveyed: "Survey") -> None:
    """Fill the examples of texts that are packed."""
    if isinstance(length := workload.get("sequence_length"), int) and length > 0:
        sequences = max(1, surveyed.bytes // (BYTES_PER_TOKEN * length))
        why = (
            f"about one epoch: {surveyed.bytes} bytes of text, {BYTES_PER_TOKEN} a token, "
            f"{length} tokens a sequence"
        )
        draft.give("workload.examples", sequences, why)


def _is_chat(draft: SuiteDraft, workload: Mapping[str, Any], columns: "Columns") -> bool:
    """Whether the suite or the names of the columns say that the rows are conversations."""
    named = workload["dataset"]
    if named.get("format") == DatasetFormat.CHAT:
        return True
    has_texts = "text_column" in named or "text" in columns.names
    is_open = named.get("format", DatasetFormat.AUTO) == DatasetFormat.AUTO and not has_texts
    if workload["task"] != Task.CAUSAL_LM or not is_open or columns.chat is None:
        return False
    why = f"the data has {' and '.join(columns.chat)}"
    draft.give("workload.dataset.format", DatasetFormat.CHAT.value, why)
    return True


def _fill_examples_of_chat(
    draft: SuiteDraft, workload: Mapping[str, Any], surveyed: "Survey", config: Mapping[str, Any]
) -> None:
    _fill_length(draft, workload, surveyed, config)
    training = draft.document.get("training")
    if isinstance(training, Mapping) and training.get("packing") is False:
        why = f"one epoch: the conversations of {workload['dataset']['path']}"
        draft.give("workload.examples", surveyed.rows, why)
    else:
        _fill_examples(draft, workload, surveyed)


def _fill_columns(
    draft: SuiteDraft, named: Mapping[str, Any], columns: "Columns", *, with_labels: bool
) -> bool:
    """Whether each column that is needed is known, or given."""
    texts = _text_columns(named, columns, with_labels=with_labels)
    form = None if with_labels and texts else columns.form
    is_known = _fill_column(draft, named, columns.names, TEXT_COLUMN, texts, form=form)
    if not with_labels:
        return is_known
    return _fill_column(draft, named, columns.names, LABEL_COLUMN, columns.labels) and is_known


def _text_columns(
    named: Mapping[str, Any], columns: "Columns", *, with_labels: bool
) -> tuple[str, ...]:
    """The columns that may hold the texts: several, where another one beside it has words."""
    if len(columns.texts) != 1:
        return columns.texts
    labels = {named.get("label_column", "label"), *columns.labels} if with_labels else set()
    others = {*columns.texts, *labels}
    return (*columns.texts, *(column for column in columns.worded if column not in others))


def _fill_column(
    draft: SuiteDraft,
    named: Mapping[str, Any],
    names: Sequence[str],
    column: _Column,
    candidates: Sequence[str],
    *,
    form: str | None = None,
) -> bool:
    """Whether the column is known, or given.

    Args:
        draft: The suite, which gets the column, or the problem.
        named: The suite's dataset.
        names: The columns of the data.
        column: The column that is needed.
        candidates: The columns of the data that may be it.
        form: What is wrong with data of this form, whatever their columns.
    """
    path = f"workload.dataset.{column.field}"
    given = named.get(column.field)
    if given in names or (given is None and column.usual in names):
        return True
    if given is not None:
        problem = _unknown_column(given, names)
    elif form:
        problem = f"got nothing: {form}"
    elif len(candidates) == 1:
        draft.give(path, candidates[0], f"the only column with {column.holds}")
        return True
    else:
        choices = listed(candidates or names) or "none"
        problem = f"got nothing, expected one of the data's columns: {choices}"
        if column is LABEL_COLUMN and len(names) == 1:
            problem = (
                f"got nothing, and {choices} is the data's only column: a classifier needs one "
                "with labels"
            )
    draft.refuse(path, problem, leaves_open=OF_DATA)
    return False


def _unknown_column(given: str, names: Sequence[str]) -> str:
    alike = [name for name in names if _composed(name) == _composed(given)]
    if alike:
        return f"got {given!a}, expected {alike[0]!a}: the same in another Unicode form"
    return f'got "{given}", expected a column of the data: {listed(names)}'


def _fill_length(
    draft: SuiteDraft, workload: Mapping[str, Any], surveyed: "Survey", config: Mapping[str, Any]
) -> None:
    """Texts of a language model fill its sequences; a classifier's are padded to the
    longest.
    """
    positions = longest_sequence(config)
    longest = min(positions or LONGEST_OF_MODEL, LONGEST_OF_MODEL)
    bound = f"at most {LONGEST_OF_MODEL}"
    if positions is not None:
        of_model = f"the model has {positions} positions"
        bound = of_model if positions == longest else f"{bound}, {of_model}"
    if workload["task"] != Task.SEQUENCE_CLASSIFICATION:
        draft.give("workload.sequence_length", longest, bound)
        return
    longest_bytes = max(surveyed.rows_by_bytes, default=0)
    needed = max(SHORTEST, longest_bytes // LEAST_BYTES_PER_TOKEN + SPECIAL_TOKENS)
    why = f"the longest text has {longest_bytes} bytes, {bound}"
    draft.give("workload.sequence_length", min(2 ** (needed - 1).bit_length(), longest), why)


def _length_cautions(
    document: Mapping[str, Any], surveyed: "Survey", length: object
) -> Iterator[str]:
    """How many texts a classifier's sequences cut, and how much of them is padding."""
    if not isinstance(length, int) or length <= SPECIAL_TOKENS or not surveyed.rows:
        return
    if cut := surveyed.rows_above(BYTES_PER_TOKEN * (length - SPECIAL_TOKENS)):
        yield (
            f"about {cut:,} of {surveyed.rows:,} texts have more than {length:,} tokens, at "
            f"{BYTES_PER_TOKEN} bytes each, and are cut"
        )
    filled = surveyed.bytes / surveyed.rows / BYTES_PER_TOKEN / length
    if filled < MOSTLY_PADDING and '"padding":' not in json.dumps(document, default=str):
        yield (
            f"texts fill about {filled:.0%} of {length:,} tokens, the rest is padding: "
            "training.padding: longest or bucket, or an axis of them, may be much faster"
        )


def _composed(text: object) -> str:
    return unicodedata.normalize("NFC", str(text))


def _dataset(named: Mapping[str, Any]) -> Dataset | None:
    known = {field.name for field in fields(Dataset)}
    try:
        of_files = {name: value for name, value in named.items() if name not in OF_CHAT}
        values = {**of_files, "format": DatasetFormat(named.get("format", DatasetFormat.AUTO))}
    except ValueError:
        return None
    is_text = all(isinstance(value, str) for value in values.values() if value is not None)
    return Dataset(**values) if is_text and known >= values.keys() else None


def chat_columns(named: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """The columns by which the data on this machine are conversations; none where they are not, or
    can't be read.
    """
    dataset = _dataset(named)
    if dataset is None or dataset.path is None or missing_libraries() or not has_training_code():
        return ()
    from training.data.survey import find_columns  # noqa: PLC0415  (imports pyarrow)
    from training.errors import WorkloadError  # noqa: PLC0415

    columns = None
    with local_data(dataset.path, folder) as root:
        if root is not None and is_small(root):
            with suppress(WorkloadError):
                columns = find_columns(dataset, root)
    is_chat = columns is not None and "text" not in columns.names
    return (columns.chat or ()) if columns is not None and is_chat else ()


def _model_config(model: object, folder: Path) -> Mapping[str, Any]:
    """The configuration in the suite or in the model's folder on this machine; empty without one
    that can be read.
    """
    if isinstance(model, Mapping) and isinstance(model.get("config"), Mapping):
        return dict(model["config"])
    path = model.get("path") if isinstance(model, Mapping) else model
    local = find_local(path, folder) if isinstance(path, str) else None
    whole = None if local is None else base_of(local, folder)
    return {} if whole is None else read_configuration(whole)
