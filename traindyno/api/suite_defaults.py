"""What a suite file may leave out: each default with its reason, from the file, its data, its model
and this machine.

The built-in tasks need a task, a model, a dataset and what varies; a script its source, arguments
and examples.
"""

import json
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields, replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeGuard

from traindyno.api.local_paths import find_local, find_path_problems, path_problem, source_problem
from traindyno.api.model_check import base_of, read_configuration
from traindyno.api.sample_data import is_sample, why_no_sample, write_sample
from traindyno.api.training_code import has_training_code, missing_libraries
from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.documents.problems import one_of, refusal, shown, unknown_field
from traindyno.core.errors import Problem
from traindyno.core.run.saved_model import architectures, longest_sequence, tasks_of_heads
from traindyno.core.run.settings import setting_types
from traindyno.core.run.workload import OF_CHAT, Dataset, Workload
from traindyno.core.suite.checks.suite_check import NAME_CHARACTERS
from traindyno.core.suite.choices import DatasetFormat, Task
from traindyno.core.suite.feature import SuiteFeature
from traindyno.core.suite.suite import JOB_SECONDS, Confirm
from traindyno.core.suite.suite_file import accepted_fields, sections_of
from traindyno.travelling_files import listed

if TYPE_CHECKING:
    from training.data.survey import Columns, Survey  # pyarrow: not everybody who plans has it

WORKLOAD_FIELDS = {field.name: None for field in fields(Workload)}
# Section → its fields that may stand at the top of a file.
FIELDS_AT_THE_TOP = {"workload": WORKLOAD_FIELDS, "measurement": {"confirm": None}}
INSTANCE_SECTIONS = ("training", "baseline", "matrix")
#: Nothing is paid on this machine; the amount is for its nominal price.
LOCAL_USD = 1
LOCAL_HOURS = 1
#: Of less, a quarter is spent on the start of processes before the cells of the first job have been
#: measured.
SHORT_HOURS = 0.25
LEAST_JOB_SECONDS = 60
#: English has 4 to 5 bytes for each token, Chinese about 3: a length that follows from 3 cuts few
#: texts off.
LEAST_BYTES_PER_TOKEN = 3
BYTES_PER_TOKEN = 4
SPECIAL_TOKENS = 2
SHORTEST = 16
LONGEST_OF_MODEL = 1024
#: What the rows of the data say
OF_DATA = tuple(f"workload.{name}" for name in ("examples", "sequence_length", "label_count"))
TIMES = ("limits.max_hours", "limits.max_job_seconds")
#: Of the sequences' tokens, what texts fill where padding is worth a word
MOSTLY_PADDING = 0.5
#: A larger file is not read whole: its examples are asked for.
MOST_DATA_BYTES = 2**28
MOST_DATA_FILES = 50_000
BUILT_IN = [task.value for task in Task if task is not Task.SCRIPT]


@dataclass(frozen=True, slots=True, kw_only=True)
class Default:
    path: str
    value: Any
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {json.dumps(self.value, ensure_ascii=False)} ({self.reason})"


def suite_name_of(stem: str) -> str:
    """The name of a suite whose file's name says it, without its suffix; empty where no letter or
    digit is in it.
    """
    return re.sub(r"[^A-Za-z0-9]+", "-", stem).strip("-")[:NAME_CHARACTERS].strip("-")


def _spread(document: Mapping[str, Any]) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The document with the fields at its top moved into the sections that they belong to, and the
    names of those that stand in both places, each with its section.
    """
    spread = dict(document)
    twice = list[tuple[str, str]]()
    for section, names in FIELDS_AT_THE_TOP.items():
        moved = {name: spread[name] for name in spread if name in names}
        inner = spread.get(section, {})
        if moved and isinstance(inner, Mapping):
            spread = {name: value for name, value in spread.items() if name not in moved}
            spread[section] = {**moved, **inner}
            twice += [(name, section) for name in sorted(moved.keys() & inner.keys())]
    return spread, twice


class CompletedSuite:
    """A suite document with its defaults.

    In ``document``, a section that is no mapping is left to the check of the form. ``problems`` say
    what has to be named by hand; ``open_paths`` are the paths that they name, and what is missing
    because of them.
    """

    def __init__(
        self,
        written: Mapping[str, Any],
        *,
        stem: str,
        folder: Path,
        is_local: bool,
        features: Iterable[SuiteFeature] = (),
    ) -> None:
        """Fill the defaults of a suite document.

        Args:
            written: Document as it was written.
            stem: Name of the suite file without its suffix.
            folder: Folder where relative paths start.
            is_local: The suite runs on this machine.
        """
        self.defaults: list[Default] = []
        self.cautions: list[str] = []
        self.problems: list[Problem] = []
        self.open_paths: set[str] = set()
        self._folder = folder
        self._is_local = is_local
        self.document, twice = _spread(written)
        for name, section in twice:
            self._refuse(
                name, f"got it here and in {section}, expected {name} in one of the two places"
            )
        self._refuse_unknown(accepted_fields(sections_of(features)))
        for name in ("workload", "training", "limits"):
            if isinstance(self.document.get(name), Mapping):
                self.document[name] = dict(self.document[name])
        suite_name = suite_name_of(stem)
        if suite_name:
            self._give("name", suite_name, "the file's name")
        self._fill_instance()
        if all(value.startswith("local.") for value in self._instances()):
            self._give("goal", "fastest", "nothing is paid on this machine")
        else:
            self._give("goal", "cheapest", "unless you say fastest")
        workload = self.document.get("workload")
        if isinstance(workload, dict):
            if isinstance(workload.get("dataset"), str):
                workload["dataset"] = {"path": workload["dataset"]}
            if workload.get("task", Task.SCRIPT if "source" in workload else None) == Task.SCRIPT:
                self._fill_script(workload)
            else:
                self._fill_built_in(workload)
        self._fill_limits()
        self._refuse_paths(workload)

    def _give(self, path: str, value: Any, reason: str) -> None:
        section, _, name = path.rpartition(".")
        place: Any = self.document
        for part in filter(None, section.split(".")):
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if isinstance(place, dict) and name not in place:
            place[name] = value
            self.defaults.append(Default(path=path, value=value, reason=reason))

    def _refuse(self, path: str, message: str, *, leaves_open: Iterable[str] = ()) -> None:
        """Note a problem.

        ``leaves_open`` are values that can't be determined for this reason, and need not be asked
        for.
        """
        self.problems.append(Problem(path=path, message=message))
        self.open_paths |= {path, *leaves_open}

    def _refuse_unknown(self, accepted: Collection[str]) -> None:
        """Note unknown fields at the top of the file; a setting belongs into a section."""
        settings = {name: f"training.{name}" for name in setting_types()}
        for name in self.document.keys() - {*accepted}:
            problem = unknown_field("", name, [*WORKLOAD_FIELDS, *accepted])
            if name in settings:
                message = refusal(
                    f"unknown field {shown(name)}",
                    "it there, or a list in matrix",
                    [settings[name]],
                )
                problem = replace(problem, message=message)
            self.problems.append(problem)
            self.open_paths.add(problem.path)

    def _instances(self) -> list[str]:
        sections = [self.document.get(name) for name in INSTANCE_SECTIONS]
        included = self.document.get("include")
        sections += included if isinstance(included, list) else []
        instances = [
            section.get("instance") for section in sections if isinstance(section, Mapping)
        ]
        values = [
            value
            for instance in instances
            for value in (instance if isinstance(instance, list) else [instance])
        ]
        return [value for value in values if isinstance(value, str)]

    def _fill_instance(self) -> None:
        if self._instances():
            return
        if not self._is_local:
            message = (
                "got nothing, expected an instance type such as ml.g5.xlarge; with --local it is "
                "this machine"
            )
            self._refuse("training.instance", message)
            return
        from localcloud.sagemaker_service.instance_table import count_gpus  # noqa: PLC0415  (the wheel lacks it)

        has_gpu = count_gpus() > 0
        self._give("training.instance", "local.gpu" if has_gpu else "local.cpu", "--local")
        training = self.document.get("training")
        matrix = self.document.get("matrix", {})
        if (
            not has_gpu
            and isinstance(training, Mapping)
            and isinstance(matrix, Mapping)
            and "strategy" not in matrix
        ):
            self._give("training.strategy", "single", "one process")

    def _fill_limits(self) -> None:
        limits = self.document.setdefault("limits", {})
        if not isinstance(limits, dict):
            return
        written = "max_minutes" if "max_minutes" in limits else "max_hours"
        if "max_minutes" in limits:
            minutes = limits.pop("max_minutes")
            if "max_hours" in limits:
                self._refuse(
                    "limits.max_minutes", "got it beside max_hours, expected one of the two"
                )
            elif _is_number(minutes) and minutes > 0:
                limits["max_hours"] = round(minutes / 60, 4)
            else:
                message = f"got {shown(minutes)}, expected a number above 0"
                self._refuse("limits.max_minutes", message, leaves_open=TIMES)
        if self._is_local:
            self._give("limits.max_usd", LOCAL_USD, "nothing is paid on this machine")
            self._give("limits.max_hours", LOCAL_HOURS, "of this machine")
        hours = limits.get("max_hours")
        with suppress(ValueError):  # a number may be text, as JSON writes money
            hours = float(hours) if isinstance(hours, str) else hours
        if not _is_number(hours):
            self.open_paths.add("limits.max_job_seconds")
        else:
            in_a_row, part = (4, "a quarter") if hours > SHORT_HOURS else (2, "half")
            seconds = max(LEAST_JOB_SECONDS, round(hours * SECONDS_PER_HOUR / in_a_row))
            if JOB_SECONDS.most is not None:
                seconds = min(seconds, int(JOB_SECONDS.most))
            reason = f"{part} of {written}, so that leaders run again"
            measurement = self.document.get("measurement")
            confirm = measurement.get("confirm") if isinstance(measurement, Mapping) else None
            minutes = confirm.get("minutes") if isinstance(confirm, Mapping) else None
            if (
                _is_number(minutes)
                and (room := Confirm(minutes=max(0, minutes)).room_seconds(2)) > seconds
            ):
                seconds = room
                reason = "room for the two runs of confirm"
            self._give("limits.max_job_seconds", seconds, reason)

    def _refuse_paths(self, workload: object) -> None:
        """Note paths that don't exist beside other problems, since ``check_startable`` would refuse
        them later.
        """
        if self.problems and isinstance(workload, dict):
            beside = [
                problem
                for problem in find_path_problems(workload, self._folder)
                if problem.path not in self.open_paths
            ]
            self.problems += beside
            self.open_paths |= {problem.path for problem in beside}

    def _fill_script(self, workload: Mapping[str, Any]) -> None:
        self._give("workload.task", "script", "there is a source")
        source = workload.get("source")
        if "entry_point" in workload:
            return
        wrong = source_problem(source, None, self._folder) if isinstance(source, str) else None
        if wrong is not None:
            self._refuse(f"workload.{wrong[0]}", wrong[1], leaves_open=["workload.entry_point"])
        folder = find_local(source, self._folder) if isinstance(source, str) else None
        if folder is None or not folder.is_dir():
            return
        programs = sorted(path.name for path in folder.glob("*.py"))
        if "train.py" in programs:
            self._give("workload.entry_point", "train.py", f"in {source}")
        elif len(programs) == 1:
            self._give("workload.entry_point", programs[0], f"the only program in {source}")
        else:
            known_programs = ", ".join(programs) or "no .py file"
            self._refuse(
                "workload.entry_point",
                f"got nothing, expected one of the programs in {source}: {known_programs}",
            )

    def _fill_built_in(self, workload: dict[str, Any]) -> None:
        named = workload.get("dataset")
        config = _model_config(workload.get("model"), self._folder)
        if "task" not in workload:
            self._fill_task(named, config, OF_DATA if named is not None else ())
        with_labels = workload.get("task") == Task.SEQUENCE_CLASSIFICATION
        wanted = {"examples", "sequence_length", *(["label_count"] if with_labels else [])}
        path = named.get("path") if isinstance(named, Mapping) else None
        if not wanted <= workload.keys():
            problem = path_problem(path, self._folder) if isinstance(path, str) else None
            if named is None:
                message = "got nothing, expected a file or folder, an s3:// URI or a Hub id"
                self._refuse("workload.dataset", message, leaves_open=OF_DATA)
            elif problem is not None:
                self._refuse("workload.dataset.path", problem, leaves_open=OF_DATA)
                return
        columns = {"text_column", *(["label_column"] if with_labels else [])}
        is_complete = (
            isinstance(named, Mapping) and wanted <= workload.keys() and columns <= named.keys()
        )
        if not isinstance(named, Mapping) or (is_complete and not with_labels):
            return
        if workload.get("task") not in BUILT_IN or _dataset(named) is None:
            self.open_paths |= {*OF_DATA}  # its problem is told elsewhere, and answers these
        elif isinstance(named.get("path"), str):
            workload["dataset"] = dict(named)
            with local_data(named["path"], self._folder) as root:
                can_read = not missing_libraries() and has_training_code()
                if root is not None and can_read and is_small(root):
                    self._fill_from_data(workload, root, config)
        labels = config.get("id2label")
        if (
            workload.get("task") == Task.SEQUENCE_CLASSIFICATION
            and isinstance(labels, Mapping)
            and len(labels) > 1
        ):
            self._give("workload.label_count", len(labels), "the labels of the model's head")

    def _fill_task(
        self, named: object, config: Mapping[str, Any], leaves_open: Iterable[str]
    ) -> None:
        """The task that the model was saved with; else that of conversations."""
        tasks = tasks_of_heads(config)
        names = architectures(config)
        if len(tasks) == 1:
            self._give("workload.task", tasks.pop().value, f"the model is a {names[0]}")
            return
        if isinstance(named, Mapping) and (chat := chat_columns(named, self._folder)):
            reason = f"the data has {' and '.join(chat)}"
            self._give("workload.task", Task.CAUSAL_LM.value, reason)
            return
        message = f"got nothing, expected {one_of(Task)}"
        if names:
            message += f"; the model is a {names[0]}, which no built-in task trains as it is"
        self._refuse("workload.task", message, leaves_open=leaves_open)

    def _fill_from_data(
        self, workload: dict[str, Any], root: Path, config: Mapping[str, Any]
    ) -> None:
        """Reads the data as the job will read it, so that what is wrong with it is known before."""
        from training.data.survey import (  # noqa: PLC0415  (imports pyarrow)
            find_columns,
            survey,
            survey_chat,
        )
        from training.errors import WorkloadError  # noqa: PLC0415

        with_labels = workload["task"] == Task.SEQUENCE_CLASSIFICATION
        try:
            dataset = _dataset(workload["dataset"])
            columns = None if dataset is None else find_columns(dataset, root)
            if columns is not None and self._is_chat(workload, columns):
                dataset = _dataset(workload["dataset"])
                if dataset is not None and not {"examples", "sequence_length"} <= workload.keys():
                    self._fill_examples_of_chat(workload, survey_chat(dataset, root), config)
                return
            if columns is not None and not self._fill_columns(
                workload["dataset"], columns, with_labels=with_labels
            ):
                return
            dataset = _dataset(workload["dataset"])
            if dataset is None or (
                not with_labels and {"examples", "sequence_length"} <= workload.keys()
            ):
                return
            surveyed = survey(dataset, root, with_labels=with_labels)
        except WorkloadError as error:
            self._refuse("workload.dataset.path", str(error), leaves_open=OF_DATA)
            return
        if with_labels:
            self._fill_label_count(workload, surveyed, dataset.path)
        self._fill_length(workload, surveyed, config)
        if with_labels:
            self.cautions += _length_cautions(
                self.document, surveyed, workload.get("sequence_length")
            )
            self._give("workload.examples", surveyed.rows, f"one epoch: the rows of {dataset.path}")
        else:
            self._fill_examples(workload, surveyed)

    def _fill_label_count(
        self, workload: Mapping[str, Any], surveyed: "Survey", path: str | None
    ) -> None:
        from training.data.survey import label_problem  # noqa: PLC0415  (imports pyarrow)

        labels = [label.value for label in surveyed.labels]
        count = len(labels)
        if count < 2 and "label_count" not in workload:
            named = ", ".join(map(repr, labels))
            self._refuse(
                "workload.label_count",
                f"got one label only in {path} ({named}), expected at least two",
            )
            return
        why = f"the labels of {path}"
        if {str(label) for label in labels} == {str(1 + number) for number in range(count)}:
            why += f" are 1 to {count}, and classes count from 0"
            count += 1
        self._give("workload.label_count", count, why)
        self.cautions += surveyed.cautions
        given = workload["label_count"]
        problem = label_problem(surveyed, given) if isinstance(given, int) else None
        if problem:
            self._refuse("workload.label_count", problem)

    def _fill_examples(self, workload: Mapping[str, Any], surveyed: "Survey") -> None:
        """Fill the examples of texts that are packed."""
        if isinstance(length := workload.get("sequence_length"), int) and length > 0:
            sequences = max(1, surveyed.bytes // (BYTES_PER_TOKEN * length))
            why = (
                f"about one epoch: {surveyed.bytes} bytes of text, {BYTES_PER_TOKEN} a token, "
                f"{length} tokens a sequence"
            )
            self._give("workload.examples", sequences, why)

    def _is_chat(self, workload: Mapping[str, Any], columns: "Columns") -> bool:
        """Whether the suite or the names of the columns say that the rows are conversations."""
        named = workload["dataset"]
        if named.get("format") == DatasetFormat.CHAT:
            return True
        has_texts = "text_column" in named or "text" in columns.names
        is_open = named.get("format", DatasetFormat.AUTO) == DatasetFormat.AUTO and not has_texts
        if workload["task"] != Task.CAUSAL_LM or not is_open or columns.chat is None:
            return False
        why = f"the data has {' and '.join(columns.chat)}"
        self._give("workload.dataset.format", DatasetFormat.CHAT.value, why)
        return True

    def _fill_examples_of_chat(
        self, workload: Mapping[str, Any], surveyed: "Survey", config: Mapping[str, Any]
    ) -> None:
        self._fill_length(workload, surveyed, config)
        training = self.document.get("training")
        if isinstance(training, Mapping) and training.get("packing") is False:
            why = f"one epoch: the conversations of {workload['dataset']['path']}"
            self._give("workload.examples", surveyed.rows, why)
        else:
            self._fill_examples(workload, surveyed)

    def _fill_columns(
        self, named: Mapping[str, Any], columns: "Columns", *, with_labels: bool
    ) -> bool:
        """Whether each column that is needed is known, or given."""
        is_known = True
        texts = columns.texts
        if len(texts) == 1:
            label = named.get("label_column", "label")
            of_label = {label, *columns.labels} if with_labels else set()
            texts = (
                *texts,
                *(column for column in columns.worded if column not in {*texts, *of_label}),
            )
        for field, usual, candidates, is_needed in (
            ("text_column", "text", texts, True),
            ("label_column", "label", columns.labels, with_labels),
        ):
            if not is_needed:
                continue
            given = named.get(field)
            path = f"workload.dataset.{field}"
            if given is not None:
                if given not in columns.names:
                    message = (
                        f'got "{given}", expected a column of the data: {listed(columns.names)}'
                    )
                    if alike := [
                        name for name in columns.names if _composed(name) == _composed(given)
                    ]:
                        message = (
                            f"got {given!a}, expected {alike[0]!a}: the same in another Unicode "
                            "form"
                        )
                    self._refuse(path, message, leaves_open=OF_DATA)
                    is_known = False
            elif usual in columns.names:
                continue  # the form's own default
            elif field == "text_column" and columns.form and not (with_labels and candidates):
                self._refuse(path, f"got nothing: {columns.form}", leaves_open=OF_DATA)
                is_known = False
            elif len(candidates) == 1:
                self._give(
                    path,
                    candidates[0],
                    f"the only column with {'texts' if field == 'text_column' else 'labels'}",
                )
            else:
                which = listed(candidates or columns.names) or "none"
                message = f"got nothing, expected one of the data's columns: {which}"
                if field == "label_column" and len(columns.names) == 1:
                    message = (
                        f"got nothing, and {which} is the data's only column: a classifier needs "
                        "one with labels"
                    )
                self._refuse(path, message, leaves_open=OF_DATA)
                is_known = False
        return is_known

    def _fill_length(
        self, workload: Mapping[str, Any], surveyed: "Survey", config: Mapping[str, Any]
    ) -> None:
        """Texts of a language model fill its sequences; a classifier's are padded to the
        longest.
        """
        positions = longest_sequence(config)
        longest = min(positions or LONGEST_OF_MODEL, LONGEST_OF_MODEL)
        of_model = "" if positions is None else f"the model has {positions} positions"
        if workload["task"] != Task.SEQUENCE_CLASSIFICATION:
            self._give(
                "workload.sequence_length", longest, of_model or f"at most {LONGEST_OF_MODEL}"
            )
            return
        longest_bytes = max(surveyed.rows_by_bytes, default=0)
        needed = max(SHORTEST, longest_bytes // LEAST_BYTES_PER_TOKEN + SPECIAL_TOKENS)
        why = [f"the longest text has {longest_bytes} bytes", *([of_model] if of_model else [])]
        self._give(
            "workload.sequence_length", min(2 ** (needed - 1).bit_length(), longest), ", ".join(why)
        )


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


def is_small(root: Path) -> bool:
    """Whether the data of a folder are so few that they are read whole; a large one is not listed
    to its end.
    """
    size = 0
    for number, path in enumerate(chain([root], root.rglob("*"))):
        size += path.stat().st_size if path.is_file() else 0
        if size > MOST_DATA_BYTES or number > MOST_DATA_FILES:
            return False
    return True


def _composed(text: object) -> str:
    return unicodedata.normalize("NFC", str(text))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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


@contextmanager
def local_data(path: str, folder: Path) -> Iterator[Path | None]:
    """The file or folder of this machine; None for data elsewhere."""
    if not is_sample(path):
        yield find_local(path, folder)
    elif why_no_sample(path) is not None:
        yield None
    else:
        with TemporaryDirectory() as beside:
            yield write_sample(path, Path(beside) / "sample")


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
