"""Numbers class labels from 0, in the same way for all splits, epochs and readers of a dataset."""

import json
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from training.errors import WorkloadError

if TYPE_CHECKING:
    from training.data.batch import Array  # PyTorch: not needed by a plan
    from training.data.checked_rows import Rows  # pyarrow: not needed for tokens that exist

LABEL_NAMES = "label_names.json"
#: Texts that pandas writes for a missing value
MISSING_VALUES = ("nan", "nat", "<na>")
#: More labels with a fraction are rather measurements
MOST_DECIMALS = 10
NUMBERS_EXPECTED = (
    "a whole number from 0 (a dataset that is streamed can't have its texts numbered)"
)


class Labelled(NamedTuple):
    """A label as it is in the data, with its place for messages.

    It is a tuple because a dataset has millions.
    """

    value: object
    file: str
    row: int


def label_of(rows: "Rows", place: int) -> Labelled | None:
    """The label of the row ``place``, counted from 0; None where no labels are read."""
    return (
        None
        if rows.labels is None
        else Labelled(rows.labels[place], rows.file, rows.first_row + place)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelNumbers:
    """The numbers of a dataset's labels."""

    #: The number of each text; empty where the labels are numbers already.
    names: Mapping[str, int]
    label_count: int | None
    #: The names of all classes in the order of their numbers.
    by_number: Sequence[str] = ()

    def number(self, label: Labelled) -> int:
        """Raises WorkloadError for a label outside 0 to ``label_count`` − 1, or one that ``names``
        lacks.
        """
        number = _whole_number(label.value)
        if self.names:
            number = self.names.get(str(label.value))
        if number is None:
            accepted = (
                f"one of {', '.join(list(self.names)[:10])}" if self.names else NUMBERS_EXPECTED
            )
            raise _unexpected(label, accepted)
        if number < 0 or (self.label_count is not None and number >= self.label_count):
            most = (
                f"0 to {(self.label_count or 0) - 1}, because workload.label_count is "
                f"{self.label_count}"
            )
            raise _unexpected(label, NUMBERS_EXPECTED if self.label_count is None else most)
        return number


def number_labels(
    labels: Iterable[Labelled], label_count: int | None, head: Sequence[str] = ()
) -> LabelNumbers:
    """Keeps integers, also those written as 1.0 or "1".

    Texts get the numbers that they have in ``head``, the labels of a saved classifier, if it has
    all of them; capitals don't matter. Otherwise they are numbered alphabetically.

    Raises WorkloadError if there are more texts than ``label_count``, or one in two Unicode forms.
    """
    values = {str(label.value): label.value for label in labels}
    forms: dict[str, str] = {}
    for text in values:
        other = forms.setdefault(unicodedata.normalize("NFC", text), text)
        if other != text:
            both = f"{other!a} and {text!a}"
            raise WorkloadError(
                f"the labels {both} are one text in two Unicode forms; expected one of them in all "
                "rows"
            )
    if all(_whole_number(value) is not None for value in values.values()):
        return LabelNumbers(names={}, label_count=label_count)
    of_head = _numbers_in(head, list(values))
    if head and of_head is not None:
        return LabelNumbers(names=of_head, label_count=label_count, by_number=head)
    names = {name: number for number, name in enumerate(sorted(values))}
    if label_count is not None and len(names) > label_count:
        listed = ", ".join(list(names)[:10])
        raise WorkloadError(
            f"the data has {len(names)} different labels ({listed}); workload.label_count says "
            f"{label_count}"
        )
    if head:
        print(  # noqa: T201
            f"labels: the data's ({', '.join(list(names)[:10])}) are not those of the model's "
            f"saved head ({', '.join(head[:10])}): they are numbered alphabetically, and the head "
            "learns them anew",
            flush=True,
        )
    return LabelNumbers(names=names, label_count=label_count, by_number=list(names))


def label_cautions(labels: Sequence[Labelled], column: str) -> Iterator[str]:
    """What is likely a mistake in the data, and is trained on all the same."""
    texts = [str(label.value).strip() for label in labels]
    if len(labels) == 1:
        yield f"all rows have the label {labels[0].value!r}: there is nothing to learn"
    if len(labels) > MOST_DECIMALS and _are_decimals(texts):
        yield f"the {len(labels)} labels are decimal numbers, and each is a class of its own"
    alike: dict[str, Labelled] = {}
    for label, text in zip(labels, texts, strict=True):
        if text.casefold() in MISSING_VALUES:
            yield (
                f"the label {label.value!r} is a class; pandas writes this word for a missing value"
            )
        if text == column:
            where = f"{label.file}, row {label.row}"
            yield f"{where}: the label {text!r} is its column's name: a header too few or too many?"
        other = alike.setdefault(text.casefold(), label)
        if other is not label and _whole_number(label.value) is None:
            yield (
                f"the labels {other.value!r} and {label.value!r} are two classes; capitals or "
                "blanks differ alone"
            )


def _are_decimals(texts: Sequence[str]) -> bool:
    try:
        return all("." in text for text in texts) and not all(
            float(text).is_integer() for text in texts
        )
    except (ValueError, OverflowError):
        return False


def _numbers_in(head: Sequence[str], texts: Sequence[str]) -> dict[str, int] | None:
    """The number that the head gives each text; None if it lacks one, or confuses two."""
    exact = {name: number for number, name in enumerate(head)}
    folded: dict[str, list[int]] = {}
    for name, number in exact.items():
        folded.setdefault(name.strip().casefold(), []).append(number)
    candidates = [
        [exact[text]] if text in exact else folded.get(text.strip().casefold(), [])
        for text in texts
    ]
    numbers = [numbers_of_text[0] for numbers_of_text in candidates if len(numbers_of_text) == 1]
    return dict(zip(texts, numbers, strict=True)) if len(set(numbers)) == len(texts) else None


class LabelValues:
    """The different labels of a dataset, numbered as they come.

    ``firsts`` has the first label of each value.
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self.firsts: list[Labelled] = []

    def code(self, label: Labelled) -> int:
        code = self._codes.setdefault(str(label.value), len(self.firsts))
        if code == len(self.firsts):
            self.firsts.append(label)
        return code

    def numbered(self, codes: "array[int]", numbers: LabelNumbers) -> "Array":
        """Returns [N], the number of each code.

        Raises WorkloadError for the first label that ``numbers`` refuses.
        """
        of_code = np.asarray([numbers.number(label) for label in self.firsts], dtype=np.int64)
        numbered: Array = of_code[np.frombuffer(codes, dtype=np.intc)]
        return numbered


def write_label_names(folder: Path, numbers: LabelNumbers) -> None:
    if numbers.names:
        (folder / LABEL_NAMES).write_text(json.dumps(list(numbers.by_number)), encoding="utf-8")


def read_label_names(folder: Path) -> Sequence[str]:
    """The names in the order of their numbers; none where the labels are numbers."""
    path = folder / LABEL_NAMES
    names: list[str] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return names


def _unexpected(label: Labelled, expected: str) -> WorkloadError:
    return WorkloadError(
        f"{label.file}, row {label.row}: the label is {label.value!r}; expected {expected}"
    )


def _whole_number(value: object) -> int | None:
    """The number that the value stands for: True, 1.0, "1" and "1.0" are 1.

    None if it is not an integer.
    """
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        text = value.strip().removesuffix(".0")
        return int(text) if text.removeprefix("-").isdecimal() else None
    return int(value) if isinstance(value, float) and value.is_integer() else None
