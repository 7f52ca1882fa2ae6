"""The format of a data file by its name: formats that can be read, formats that can't, and files
that are no data.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from traindyno.core.errors import TraindynoError
from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import DatasetFormat

FORMATS = {
    ".csv": DatasetFormat.CSV,
    ".tsv": DatasetFormat.CSV,
    ".json": DatasetFormat.JSON,
    ".jsonl": DatasetFormat.JSON,
    ".ndjson": DatasetFormat.JSON,
    ".parquet": DatasetFormat.PARQUET,
    ".arrow": DatasetFormat.ARROW,
}
COMPRESSIONS = (".gz", ".bz2", ".xz")
#: The files are of the format that their names say.
BY_NAMES = (DatasetFormat.AUTO, DatasetFormat.CHAT)
#: The formats of files that have rows.
ROW_FORMATS = (*dict.fromkeys(FORMATS.values()),)
READABLE = f"text, {', '.join(FORMATS)}; those of text also packed as {', '.join(COMPRESSIONS)}"
# These hold data that people train on, but in a form that no reader here knows.
UNREADABLE = frozenset(
    (
        ".zst",
        ".zstd",
        ".zip",
        ".lz4",
        ".br",
        ".7z",
        ".rar",
        ".tar",
        ".tgz",
        ".tbz2",
        ".txz",
        ".snappy",
        ".lzma",
        ".xlsx",
        ".xls",
        ".ods",
        ".feather",
        ".orc",
        ".avro",
        ".pkl",
        ".pickle",
        ".npy",
        ".npz",
        ".h5",
        ".hdf5",
        ".tfrecord",
        ".tfrecords",
        ".sqlite",
        ".sqlite3",
        ".db",
        ".pt",
        ".pdf",
        ".docx",
        ".epub",
    )
)
HUB_NAME = re.compile(r"\w[\w.\-]*(/\w[\w.\-]*)?", re.ASCII)
LONGEST_HUB_NAME = 96
FILE_SUFFIXES = {*FORMATS, *COMPRESSIONS, *UNREADABLE, ".txt", ".jinja"}
# Editors and downloads leave them beside the file.
COPIES = (".bak", ".backup", ".orig", ".old", ".tmp", ".part")
# Files beside the data in a repository of the Hub or of git.
NO_DATA = (
    "readme",
    "license",
    "licence",
    "citation",
    "changelog",
    "requirements",
    "makefile",
    "dockerfile",
)
# What map and filter of Hugging Face datasets write beside the data of save_to_disk
CACHE_OF_DATASETS = re.compile(r"cache-[0-9a-f]+(_\d+_of_\d+)?\.arrow")
NO_DATA_FILES = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")
NO_DATA_SUFFIXES = (
    ".md",
    ".rst",
    ".py",
    ".ipynb",
    ".yaml",
    ".yml",
    ".toml",
    ".cfg",
    ".lock",
    ".sh",
    ".dvc",
    ".md5",
    ".sha256",
    ".png",
    ".jpg",
    ".jpeg",
    ".gif",
    ".svg",
)
# The manifest of a folder that its owner tokenised, which a run reads as it is.
TOKENISED = "train/traindyno-data.json"
SHOWN_FILES = 10
WHOLE_DATASET = "train"
# The words and the characters around them are those of the Hugging Face datasets library
# (datasets.data_files).
SPLIT_WORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
# data-00000-of-00002.arrow, as datasets and the Hub name the parts of a set
PART_OF_SET = re.compile(r"(?P<begin>.*?)(?P<number>\d{5})-of-(?P<count>\d{5})(?P<rest>[^/]*)")
NO_WORD = re.compile(r"[-._ 0-9]+")


def is_hub_name(path: str) -> bool:
    """Whether this can name a model or a dataset on the Hub, and by its suffix no file."""
    is_file = PurePosixPath(path).suffix.lower() in FILE_SUFFIXES
    return HUB_NAME.fullmatch(path) is not None and len(path) <= LONGEST_HUB_NAME and not is_file


def format_of(name: str) -> DatasetFormat:
    return FORMATS.get(data_suffix(name), DatasetFormat.TEXT)


def data_suffix(name: str) -> str:
    """Suffix of the data's format: ``.csv`` for ``train.csv`` and for ``train.csv.gz``."""
    return _suffix_below(name, COMPRESSIONS)


def is_unreadable(name: str) -> bool:
    return data_suffix(name) in UNREADABLE


def packed_format(name: str) -> DatasetFormat:
    """The format of a file that may be packed or renamed.

    As ``format_of``, but ``train.csv.zst`` and ``train.csv.bak`` are of the format csv too.
    """
    return FORMATS.get(
        _suffix_below(name, (*COMPRESSIONS, *COPIES, *UNREADABLE)), DatasetFormat.TEXT
    )


def unpacked_name(name: str) -> str:
    """Common name of the forms of one file: ``train`` for ``train.csv``, ``train.csv.gz`` and
    ``train.jsonl``.

    Texts keep their suffix, because ``news.de`` and ``news.en`` are two texts.
    """
    bare = name.rstrip("~")
    while (suffix := PurePosixPath(bare).suffix) and suffix.lower() in (*COMPRESSIONS, *COPIES):
        bare = bare.removesuffix(suffix)
    suffix = PurePosixPath(bare).suffix
    return bare.removesuffix(suffix) if suffix.lower() in FORMATS else bare


def is_hidden(name: str) -> bool:
    """Whether a part of the path is hidden, in the sense of the Hugging Face datasets library."""
    *folders, base = name.split("/")
    return base.startswith((".", "_")) or any(folder.startswith((".", "__")) for folder in folders)


def is_documentation(name: str) -> bool:
    base = name.rsplit("/", 1)[-1].lower()
    is_named = base.split(".")[0] in NO_DATA and format_of(base) is DatasetFormat.TEXT
    return is_named or is_description(name) or data_suffix(base) in NO_DATA_SUFFIXES


def is_description(name: str) -> bool:
    """Whether a library wrote the file beside the data."""
    base = name.rsplit("/", 1)[-1].lower()
    return base in NO_DATA_FILES or CACHE_OF_DATASETS.fullmatch(base) is not None


def _suffix_below(name: str, packings: tuple[str, ...]) -> str:
    suffixes = [suffix.lower() for suffix in PurePosixPath(name).suffixes]
    while suffixes and suffixes[-1] in packings:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


class DatasetFilesInvalid(TraindynoError):
    """The dataset has no data files, or files of which only some could be read, or none for the
    requested split.
    """


def split_files(names: Sequence[str], dataset: Dataset, split: str) -> list[str]:
    """Select the files of ``split`` from ``names``, paths below the dataset's root; no file has two
    splits.

    For ``train``, if no name contains it, all data files of no other split. Raises
    DatasetFilesInvalid, also if two of them are forms of one file.
    """
    files = _of_split(data_files(names, dataset), dataset, split)
    _refuse_doubled(files)
    _refuse_parts_of_sets(files)
    return files


def _of_split(data: list[str], dataset: Dataset, split: str) -> list[str]:
    if len(data) == 1 and split == WHOLE_DATASET and dataset.evaluation_split is None:
        return data
    splits = [name for name in (dataset.split, dataset.evaluation_split, split) if name is not None]
    known = {word: name for name, words in SPLIT_WORDS.items() for word in words}
    known |= {name.lower(): known.get(name.lower(), name.lower()) for name in splits}
    by_name = {name: split_of(name, known) for name in data}
    wanted = known[split.lower()]
    named = [name for name, split_of_file in by_name.items() if split_of_file == wanted]
    unclaimed = [name for name, split_of_file in by_name.items() if split_of_file is None]
    if not named and wanted == WHOLE_DATASET:
        named = unclaimed
    if not named:
        listing = _listed(
            [f"{name} ({split_of_file or 'no split'})" for name, split_of_file in by_name.items()]
        )
        raise DatasetFilesInvalid(
            f"no file of the dataset belongs to the split {split!r}; its files are {listing}"
        )
    return named


def split_of(name: str, known: Mapping[str, str]) -> str | None:
    """The split that a file belongs to.

    The outermost folder of its path that has a split's word names it, else the file's name; None if
    neither does. ``known`` is the split of each word in a name.

    Raises DatasetFilesInvalid if one name has words of two splits.
    """
    for part in name.split("/"):
        whole = part.lower().partition(".")[0]
        words = [whole] if whole in known else NO_WORD.split(part.lower())
        splits = {known[word] for word in words if word in known}
        if len(splits) > 1:
            raise DatasetFilesInvalid(
                f"{name} names the splits {' and '.join(sorted(splits))}; expected a name with one "
                "of them"
            )
        if splits:
            return splits.pop()
    return None


def data_files(names: Sequence[str], dataset: Dataset) -> list[str]:
    """The names without hidden files and documentation; of the format that ``dataset`` names, if
    there are such.

    Raises DatasetFilesInvalid if nothing is left, or if only a part of it could be read.
    """
    visible = [name for name in names if not is_hidden(name)]
    if dataset.format in BY_NAMES:
        data = [name for name in visible if not is_documentation(name)]
    else:
        candidates = [name for name in visible if not is_description(name)]
        data = [name for name in candidates if packed_format(name) is dataset.format] or candidates
    if not data:
        hint = "; dataset.format: text reads these as texts" if visible else ""
        raise DatasetFilesInvalid(
            f"the dataset has no data files; it has {_listed(names) or 'no files'}{hint}"
        )
    _refuse_unreadable(data, dataset)
    if dataset.format in BY_NAMES:
        _refuse_mixed(data)
    return data


def _refuse_unreadable(data: Sequence[str], dataset: Dataset) -> None:
    unreadable = [name for name in data if is_unreadable(name)]
    if not unreadable:
        return
    others = [name for name in data if not is_unreadable(name)]
    only = f", so only {_listed(others)} would be read" if others else ""
    is_by_names = dataset.format in BY_NAMES
    named = ", or name the format of the others in dataset.format" if others and is_by_names else ""
    raise DatasetFilesInvalid(
        f"the dataset has files of a form that can't be read ({_listed(unreadable)}){only}; unpack "
        f"or convert them, move them out of the folder{named}; readable are {READABLE}"
    )


def _refuse_mixed(data: Sequence[str]) -> None:
    by_format: dict[DatasetFormat, list[str]] = defaultdict(list)
    for name in data:
        by_format[format_of(name)].append(name)
    if len(by_format) > 1:
        kinds = " and ".join(f"{kind} ({_listed(by_format[kind])})" for kind in sorted(by_format))
        raise DatasetFilesInvalid(
            f"the dataset has files of {len(by_format)} formats, of which only one would be read: "
            f"{kinds}; move the others out of the folder, or name the one to read in "
            "dataset.format"
        )


def _refuse_parts_of_sets(names: Sequence[str]) -> None:
    """Refuse files of sets of different sizes, which are of two generations.

    One part of a large set can be meant, but not of a set of ``save_to_disk``, which is one data
    set.
    """
    sets: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for name in names:
        part = PART_OF_SET.fullmatch(name)
        if part:
            sets[f"{part['begin']}*{part['rest']}"][int(part["count"])].add(int(part["number"]))
    for which, by_count in sets.items():
        counts = sorted(by_count)
        if len(counts) > 1:
            sizes = " and ".join(map(str, counts))
            raise DatasetFilesInvalid(
                f"{which} are parts of sets of {sizes} files; expected the files of one set"
            )
        if which.endswith(".arrow") and len(by_count[counts[0]]) < counts[0]:
            count = len(by_count[counts[0]])
            raise DatasetFilesInvalid(
                f"{which} are {count} of {counts[0]} files; expected all of them"
            )


def _refuse_doubled(names: Sequence[str]) -> None:
    forms: dict[str, list[str]] = defaultdict(list)
    for name in names:
        forms[unpacked_name(name)].append(name)
    doubled = [" and ".join(alike) for alike in forms.values() if len(alike) > 1]
    if doubled:
        raise DatasetFilesInvalid(
            f"the dataset has forms of one file that would all be read: {_listed(doubled)}; keep "
            "one form of each, or give files with different content names that differ before the "
            "suffix"
        )


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_FILES} more" if len(names) > SHOWN_FILES else ""
    return ", ".join(names[:SHOWN_FILES]) + more
