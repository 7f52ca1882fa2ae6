"""Which files of a dataset's folder belong to which split, by their names alone: each file to one split at most."""

import re
from collections.abc import Sequence

from traindyno.core.errors import TraindynoError

WHOLE_DATASET = "train"
# The words, and what may stand around them, are those of the Hugging Face datasets library (datasets.data_files).
SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
NO_WORD = re.compile(r"[-._ 0-9]+")


class SplitUnknown(TraindynoError):
    """No file belongs to the split that was asked for, or a file's name speaks of two splits."""


def files_of_split(names: Sequence[str], split: str, *, others: Sequence[str] = ()) -> list[str]:
    """Those of ``names`` that belong to ``split``; for ``train``, where no name says so, all that no split claims.

    ``names`` are paths below the dataset's root, with slashes. ``others`` are further splits that the suite uses.
    Raises SplitUnknown if none belongs to it.
    """
    known = {word: name for name, words in SPLIT_WORDS.items() for word in words}
    known |= {name.lower(): name for name in (*others, split)}
    by_name = {name: split_of(name, known) for name in names}
    wanted = known[split.lower()]
    named = [name for name, found in by_name.items() if found == wanted]
    if named:
        return named
    unclaimed = [name for name, found in by_name.items() if found is None]
    if wanted == WHOLE_DATASET and unclaimed:
        return unclaimed
    listing = ", ".join(f"{name} ({found or 'no split'})" for name, found in list(by_name.items())[:10])
    raise SplitUnknown(f"no file of the dataset belongs to the split {split!r}; its files are {listing}")


def split_of(name: str, known: dict[str, str]) -> str | None:
    """The split that a folder of the path names, else the one that the file's name names, else None.

    ``known``: word in a name → split. Raises SplitUnknown if one name has words of two splits.
    """
    for part in name.split("/"):
        words = [part.lower(), *NO_WORD.split(part.lower())]
        found = {known[word] for word in words if word in known}
        if len(found) > 1:
            raise SplitUnknown(
                f"{name} names the splits {' and '.join(sorted(found))}; expected a name with one of them"
            )
        if found:
            return found.pop()
    return None
