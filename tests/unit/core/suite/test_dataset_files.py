"""Which files of a folder are data, and of which split, by their names."""

import re
from typing import Any

import pytest

from traindyno.core.run.data_formats import (
    FORMATS,
    UNREADABLE,
    DatasetFilesInvalid,
    data_files,
    data_suffix,
    format_of,
    split_files,
)
from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import DatasetFormat

NAMED = ["train-00.csv", "training.csv", "dev.csv", "test/part-1.csv", "other.csv"]
GENERATIONS = [
    "data-00000-of-00001.arrow",
    "data-00000-of-00002.arrow",
    "data-00001-of-00002.arrow",
]
OWN = {"split": "german", "evaluation_split": "held_out"}


def dataset(**changes: Any) -> Dataset:
    return Dataset(**{"path": "s3://bucket/data/", **changes})


@pytest.mark.parametrize(
    ("name", "suffix", "file_format"),
    [
        ("train.csv", ".csv", DatasetFormat.CSV),
        ("a/b.v2.JSONL.gz", ".jsonl", DatasetFormat.JSON),
        ("part.parquet", ".parquet", DatasetFormat.PARQUET),
        ("notes.txt.xz.bz2", ".txt", DatasetFormat.TEXT),
        ("corpus.gz", "", DatasetFormat.TEXT),
        ("corpus", "", DatasetFormat.TEXT),
    ],
)
def test_the_format_follows_the_suffix_before_any_compression(
    name: str, suffix: str, file_format: DatasetFormat
) -> None:
    assert (data_suffix(name), format_of(name)) == (suffix, file_format)


def test_hidden_files_and_documentation_are_no_data() -> None:
    names = [
        "a.txt",
        ".b.txt",
        "_c.txt",
        "README",
        "License.txt",
        "state.json",
        "x/notes.md",
        "x/load.py",
        "d.txt",
    ]
    assert data_files(names, dataset()) == ["a.txt", "d.txt"]


def test_hidden_folders_are_no_data_at_any_depth() -> None:
    hidden = [
        ".ipynb_checkpoints/train-checkpoint.csv",
        ".git/hooks/pre-commit",
        "data/.cache/huggingface/train.csv.metadata",
        "__MACOSX/train.csv",
    ]
    assert data_files(["train.csv", *hidden], dataset()) == ["train.csv"]
    assert data_files(["data/_own/train.csv"], dataset()) == ["data/_own/train.csv"]


def test_files_of_one_format_are_read_together() -> None:
    assert data_files(["a.csv", "b.tsv.gz"], dataset()) == ["a.csv", "b.tsv.gz"]
    assert data_files(["a.txt", "words"], dataset()) == ["a.txt", "words"]


@pytest.mark.parametrize(
    ("names", "formats"),
    [
        (["a.csv", "b.parquet"], "csv (a.csv) and parquet (b.parquet)"),
        (["stats.csv", "corpus.txt"], "csv (stats.csv) and text (corpus.txt)"),
        (["train.jsonl", "train.jsonl.bak"], "json (train.jsonl) and text (train.jsonl.bak)"),
    ],
)
def test_files_of_two_formats_are_refused_unless_one_is_named(
    names: list[str], formats: str
) -> None:
    with pytest.raises(
        DatasetFilesInvalid,
        match=re.escape(f"of 2 formats, of which only one would be read: {formats};"),
    ):
        data_files(names, dataset())
    wanted = format_of(names[0])
    if "bak" not in names[1]:
        assert data_files(names, dataset(format=wanted)) == names[:1]


@pytest.mark.parametrize("suffix", sorted(UNREADABLE))
@pytest.mark.parametrize("kept", ["train-0.jsonl", "train-0.txt", "train-0.parquet"])
def test_an_unreadable_file_is_not_dropped_beside_others(kept: str, suffix: str) -> None:
    """Neither if its format is named, where the file is a packed form of it."""
    lost = kept.replace("0", "1") + suffix
    message = f"({lost}), so only {kept} would be read; unpack or convert them"
    for named in (DatasetFormat.AUTO, format_of(kept)):
        with pytest.raises(DatasetFilesInvalid, match=re.escape(message)) as raised:
            data_files([kept, lost], dataset(format=named))
        assert all(readable in str(raised.value) for readable in FORMATS)
    with pytest.raises(DatasetFilesInvalid, match=re.escape(f"can't be read ({lost}); unpack")):
        data_files([lost], dataset())


def test_an_unreadable_file_may_be_beside_the_named_format() -> None:
    assert data_files(["train.csv", "raw.zip"], dataset(format=DatasetFormat.CSV)) == ["train.csv"]


def test_a_named_format_decides() -> None:
    names = ["a.csv", "b.parquet"]
    assert data_files(names, dataset(format=DatasetFormat.PARQUET)) == ["b.parquet"]
    # files without such a suffix are read as it
    assert data_files(["a.txt", "b.txt"], dataset(format=DatasetFormat.JSON)) == ["a.txt", "b.txt"]


def test_a_folder_without_data_lists_its_contents() -> None:
    with pytest.raises(
        DatasetFilesInvalid, match=r"has README, \.hidden; dataset\.format: text reads these"
    ):
        data_files(["README", ".hidden"], dataset())
    assert data_files(["notes.md", "load.py"], dataset(format=DatasetFormat.TEXT)) == [
        "notes.md",
        "load.py",
    ]
    with pytest.raises(DatasetFilesInvalid, match="it has no files"):
        data_files([], dataset())
    many = [f".hidden{index:02}" for index in range(12)]
    with pytest.raises(
        DatasetFilesInvalid, match=r"it has (\.hidden\d\d, ){9}\.hidden09 and 2 more$"
    ):
        data_files(many, dataset())


@pytest.mark.parametrize(
    ("names", "split", "expected", "options"),
    [
        # one file is the whole dataset, whatever its name
        (["test.csv"], "train", [0], {}),
        # by the name or the folder; the outermost folder that tells decides
        (NAMED, "train", [0, 1], {}),
        (NAMED, "validation", [2], {}),
        (NAMED, "Test", [3], {}),
        (["test/train.csv", "train/test.csv"], "train", [1], {}),
        # without a name for train, all that no other split claims
        (["a.csv", "b.csv", "eval.csv"], "train", [0, 1], {}),
        (["latest.csv", "contest.csv", "Testing.CSV"], "train", [0, 1], {}),
        # a split of the suite's own is a word too, or several
        (["german-1.csv", "held_out/a.csv", "train.csv"], "german", [0], OWN),
        (["german-1.csv", "held_out/a.csv", "train.csv"], "held_out", [1], OWN),
        (["train.csv", "test.csv", "held_out.csv"], "held_out", [2], OWN),
        (["train.csv", "test.csv", "test-2.csv.gz"], "test-2", [2], {"evaluation_split": "test-2"}),
        # two files differ before the suffix or in their folder, or one is in a split that is not
        # read
        (["a/x.csv", "b/x.csv.gz"], "train", [0, 1], {}),
        (["news.de", "news.en"], "train", [0, 1], {}),
        (["a.csv", "a-1.csv"], "train", [0, 1], {}),
        (["a.v1.csv", "a.v2.csv"], "train", [0, 1], {}),
        (["train.csv", "test.csv", "test.csv.gz"], "train", [0], {}),
        # a set of save_to_disk is whole, and a part of a set of the hub can be meant; caches are no
        # data
        (["data-00000-of-00002.arrow", "data-00001-of-00002.arrow"], "train", [0, 1], {}),
        (["train-00000-of-01024.json.gz", "test-00000-of-00001.json.gz"], "train", [0], {}),
        (["data-00000-of-00001.arrow", "cache-1b2f3a4d5e6f7081.arrow"], "train", [0], {}),
        (["data-00000-of-00001.arrow", "cache-ab12_00000_of_00002.arrow"], "train", [0], {}),
    ],
)
def test_files_belong_to_the_split_in_their_names(
    names: list[str], split: str, expected: list[int], options: dict[str, str]
) -> None:
    assert split_files(names, dataset(**options), split) == [names[place] for place in expected]


@pytest.mark.parametrize(
    ("names", "split", "words", "options"),
    [
        (["test.csv"], "validation", "split 'validation'; its files are test.csv (test)", {}),
        (["test.csv"], "train", "split 'train'", {"evaluation_split": "test"}),
        (
            ["a.csv", "b.csv", "eval.csv"],
            "validation",
            "a.csv (no split), b.csv (no split), eval.csv (test)",
            {},
        ),
        (
            ["train-test.csv", "b.csv"],
            "train",
            "train-test.csv names the splits test and train",
            {},
        ),
        (["data-00001-of-00002.arrow"], "train", "are 1 of 2 files; expected all of them", {}),
        (GENERATIONS, "train", "data-*.arrow are parts of sets of 1 and 2 files", {}),
        # two forms of one file
        (
            ["train.csv", "train.csv.gz"],
            "train",
            "would all be read: train.csv and train.csv.gz;",
            {},
        ),
        (["train.csv", "train.tsv"], "train", "would all be read: train.csv and train.tsv;", {}),
        (
            ["part/a.jsonl", "part/a.json.xz"],
            "train",
            "would all be read: part/a.jsonl and part/a.json.xz;",
            {},
        ),
        (
            ["corpus.txt", "corpus.txt.bz2"],
            "train",
            "would all be read: corpus.txt and corpus.txt.bz2;",
            {},
        ),
        (
            ["corpus.txt", "corpus.txt~"],
            "train",
            "would all be read: corpus.txt and corpus.txt~;",
            {},
        ),
        (
            ["corpus.txt", "corpus.txt.bak"],
            "train",
            "would all be read: corpus.txt and corpus.txt.bak;",
            {},
        ),
    ],
)
def test_files_of_no_split_or_of_two_forms_or_sets_are_refused(
    names: list[str], split: str, words: str, options: dict[str, str]
) -> None:
    with pytest.raises(DatasetFilesInvalid, match=re.escape(words)):
        split_files(names, dataset(**options), split)


def test_data_may_have_the_names_of_documents() -> None:
    names = ["train.jsonl", "requirements.jsonl", "requirements.txt"]
    assert data_files(names, dataset()) == names[:2]
