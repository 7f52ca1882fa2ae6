"""The format of a data file by its name: what can be read, what can't, and what is no data."""

import re
from pathlib import PurePosixPath

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
READABLE = "text, .csv, .tsv, .json, .jsonl and .ndjson (also packed as .gz, .bz2 or .xz), .parquet and .arrow"
# These hold data that people train on, but in a form that no reader here knows.
UNREADABLE = frozenset(
    (
        *(".zst", ".zstd", ".zip", ".lz4", ".br", ".7z", ".rar", ".tar", ".tgz", ".tbz2", ".txz", ".snappy", ".lzma"),
        *(".xlsx", ".xls", ".ods", ".feather", ".orc", ".avro", ".pkl", ".pickle", ".npy", ".npz", ".h5", ".hdf5"),
        *(".tfrecord", ".tfrecords", ".sqlite", ".sqlite3", ".db", ".pt", ".pdf", ".docx", ".epub"),
    )
)
# Editors and downloads leave them beside the file.
COPIES = (".bak", ".backup", ".orig", ".old", ".tmp", ".part")
# Files beside the data in a repository of the Hub or of git.
NO_DATA = ("readme", "license", "licence", "citation", "changelog", "requirements", "makefile", "dockerfile")
# What map and filter of Hugging Face datasets write beside the data of save_to_disk
CACHE_OF_DATASETS = re.compile(r"cache-[0-9a-f]+(_\d+_of_\d+)?\.arrow")
NO_DATA_FILES = ("dataset_infos.json", "dataset_info.json", "dataset_dict.json", "state.json")
NO_DATA_SUFFIXES = (
    *(".md", ".rst", ".py", ".ipynb", ".yaml", ".yml", ".toml", ".cfg", ".lock", ".sh", ".dvc", ".md5", ".sha256"),
    *(".png", ".jpg", ".jpeg", ".gif", ".svg"),
)


def format_of(name: str) -> DatasetFormat:
    return FORMATS.get(data_suffix(name), DatasetFormat.TEXT)


def data_suffix(name: str) -> str:
    """``.csv`` of ``train.csv`` and of ``train.csv.gz``."""
    return _suffix_below(name, COMPRESSIONS)


def is_unreadable(name: str) -> bool:
    return data_suffix(name) in UNREADABLE


def packed_format(name: str) -> DatasetFormat:
    """``format_of``, but also ``train.csv.zst`` and ``train.csv.bak`` are of the format csv."""
    return FORMATS.get(_suffix_below(name, (*COMPRESSIONS, *COPIES, *UNREADABLE)), DatasetFormat.TEXT)


def unpacked_name(name: str) -> str:
    """What the forms of one file have in common: ``train`` of ``train.csv``, ``train.csv.gz`` and ``train.jsonl``.

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
