"""Which files of a folder are data, and of which split, by their names."""

import re
from typing import Any

import pytest

from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.data_formats import (
    FORMATS,
    UNREADABLE,
    DatasetFilesInvalid,
    data_files,
    data_suffix,
    format_of,
    split_files,
)
from traindyno.core.suite.workload import Dataset


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
def test_the_format_is_that_of_the_suffix_before_any_compression(
    name: str, suffix: str, file_format: DatasetFormat
) -> None:
    assert (data_suffix(name), format_of(name)) == (suffix, file_format)


def test_hidden_files_and_documentation_are_no_data() -> None:
    names = ["a.txt", ".b.txt", "_c.txt", "README", "License.txt", "state.json", "x/notes.md", "x/load.py", "d.txt"]
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
    ("names", "found"),
    [
        (["a.csv", "b.parquet"], "csv (a.csv) and parquet (b.parquet)"),
        (["stats.csv", "corpus.txt"], "csv (stats.csv) and text (corpus.txt)"),
        (["train.jsonl", "train.jsonl.bak"], "json (train.jsonl) and text (train.jsonl.bak)"),
    ],
)
def test_files_of_two_formats_are_refused_unless_one_is_named(names: list[str], found: str) -> None:
    with pytest.raises(
        DatasetFilesInvalid, match=re.escape(f"of 2 formats, of which only one would be read: {found};")
    ):
        data_files(names, dataset())
    wanted = format_of(names[0])
    if "bak" not in names[1]:
        assert data_files(names, dataset(format=wanted)) == names[:1]


@pytest.mark.parametrize("suffix", sorted(UNREADABLE))
@pytest.mark.parametrize("kept", ["train-0.jsonl", "train-0.txt", "train-0.parquet"])
def test_a_file_that_cannot_be_read_is_not_dropped_beside_others(kept: str, suffix: str) -> None:
    """Neither if its format is named, where the file is a packed form of it."""
    lost = kept.replace("0", "1") + suffix
    message = f"({lost}), so only {kept} would be read; unpack or convert them"
    for named in (DatasetFormat.AUTO, format_of(kept)):
        with pytest.raises(DatasetFilesInvalid, match=re.escape(message)) as raised:
            data_files([kept, lost], dataset(format=named))
        assert all(readable in str(raised.value) for readable in FORMATS)
    with pytest.raises(DatasetFilesInvalid, match=re.escape(f"can't be read ({lost}); unpack")):
        data_files([lost], dataset())


def test_a_file_that_cannot_be_read_may_be_beside_the_format_that_is_named() -> None:
    assert data_files(["train.csv", "raw.zip"], dataset(format=DatasetFormat.CSV)) == ["train.csv"]


@pytest.mark.parametrize(
    "names",
    [
        ["train.csv", "train.csv.gz"],
        ["train.csv", "train.tsv"],
        ["part/a.jsonl", "part/a.json.xz"],
        ["corpus.txt", "corpus.txt.bz2"],
        ["corpus.txt", "corpus.txt~"],
        ["corpus.txt", "corpus.txt.bak"],
    ],
)
def test_two_forms_of_one_file_are_not_both_read(names: list[str]) -> None:
    with pytest.raises(DatasetFilesInvalid, match=re.escape(f"would all be read: {names[0]} and {names[1]}; keep one")):
        split_files([*names, "part/other"], dataset(format=format_of(names[0])), "train")


def test_files_that_differ_before_the_suffix_or_in_their_folder_are_two() -> None:
    for names in (["a/x.csv", "b/x.csv.gz"], ["news.de", "news.en"], ["a.csv", "a-1.csv"], ["a.v1.csv", "a.v2.csv"]):
        assert split_files(names, dataset(), "train") == names
    # the other form is in a split that is not read
    assert split_files(["train.csv", "test.csv", "test.csv.gz"], dataset(), "train") == ["train.csv"]


def test_a_format_that_is_named_decides() -> None:
    names = ["a.csv", "b.parquet"]
    assert data_files(names, dataset(format=DatasetFormat.PARQUET)) == ["b.parquet"]
    # files without such a suffix are read as it
    assert data_files(["a.txt", "b.txt"], dataset(format=DatasetFormat.JSON)) == ["a.txt", "b.txt"]


def test_a_folder_without_data_lists_what_it_has() -> None:
    with pytest.raises(DatasetFilesInvalid, match=r"has README, \.hidden; dataset\.format: text reads these"):
        data_files(["README", ".hidden"], dataset())
    assert data_files(["notes.md", "load.py"], dataset(format=DatasetFormat.TEXT)) == ["notes.md", "load.py"]
    with pytest.raises(DatasetFilesInvalid, match="it has no files"):
        data_files([], dataset())
    many = [f".hidden{index:02}" for index in range(12)]
    with pytest.raises(DatasetFilesInvalid, match=r"it has (\.hidden\d\d, ){9}\.hidden09 and 2 more$"):
        data_files(many, dataset())


def test_one_file_is_the_whole_dataset_whatever_its_name() -> None:
    assert split_files(["test.csv"], dataset(), "train") == ["test.csv"]
    with pytest.raises(DatasetFilesInvalid, match=r"split 'validation'; its files are test\.csv \(test\)"):
        split_files(["test.csv"], dataset(), "validation")
    with pytest.raises(DatasetFilesInvalid, match="split 'train'"):
        split_files(["test.csv"], dataset(evaluation_split="test"), "train")


def test_files_are_of_the_split_that_their_name_or_folder_tells() -> None:
    names = ["train-00.csv", "training.csv", "dev.csv", "test/part-1.csv", "other.csv"]
    assert split_files(names, dataset(), "train") == ["train-00.csv", "training.csv"]
    assert split_files(names, dataset(), "validation") == ["dev.csv"]
    assert split_files(names, dataset(), "Test") == ["test/part-1.csv"]
    # the outermost folder that tells decides
    assert split_files(["test/train.csv", "train/test.csv"], dataset(), "train") == ["train/test.csv"]


def test_where_no_name_says_train_all_that_no_other_split_claims_is_it() -> None:
    names = ["a.csv", "b.csv", "eval.csv"]
    assert split_files(names, dataset(), "train") == ["a.csv", "b.csv"]
    assert split_files(["latest.csv", "contest.csv", "Testing.CSV"], dataset(), "train") == [
        "latest.csv",
        "contest.csv",
    ]
    with pytest.raises(DatasetFilesInvalid, match=r"a.csv \(no split\), b.csv \(no split\), eval.csv \(test\)"):
        split_files(names, dataset(), "validation")


def test_a_split_of_the_suites_own_is_a_word_too() -> None:
    own = dataset(split="german", evaluation_split="held_out")
    names = ["german-1.csv", "held_out/a.csv", "train.csv"]
    assert split_files(names, own, "german") == ["german-1.csv"]
    assert split_files(names, own, "held_out") == ["held_out/a.csv"]


@pytest.mark.parametrize("name", ["held_out.csv", "held_out/0.csv", "test-2.csv.gz"])
def test_a_splits_name_may_be_of_several_words(name: str) -> None:
    split = "test-2" if "test" in name else "held_out"
    assert split_files(["train.csv", "test.csv", name], dataset(evaluation_split=split), split) == [name]


def test_a_name_of_two_splits_is_refused() -> None:
    with pytest.raises(DatasetFilesInvalid, match=r"train-test\.csv names the splits test and train"):
        split_files(["train-test.csv", "b.csv"], dataset(), "train")


def test_parts_of_two_generations_of_a_set_are_refused() -> None:
    mixed = ["data-00000-of-00001.arrow", "data-00000-of-00002.arrow", "data-00001-of-00002.arrow"]
    with pytest.raises(DatasetFilesInvalid, match=r"data-\*\.arrow are parts of sets of 1 and 2 files"):
        split_files(mixed, dataset(), "train")
    assert split_files(mixed[1:], dataset(), "train") == mixed[1:]


def test_a_set_of_save_to_disk_is_read_whole_and_a_part_of_a_hub_set_can_be_meant() -> None:
    with pytest.raises(DatasetFilesInvalid, match=r"are 1 of 2 files; expected all of them"):
        split_files(["data-00001-of-00002.arrow"], dataset(), "train")
    part = ["train-00000-of-01024.json.gz", "test-00000-of-00001.json.gz"]
    assert split_files(part, dataset(), "train") == part[:1]


def test_caches_of_datasets_are_no_data_and_data_may_have_the_names_of_documents() -> None:
    found = ["data-00000-of-00001.arrow", "cache-1b2f3a4d5e6f7081.arrow", "cache-ab12_00000_of_00002.arrow"]
    assert split_files(found, dataset(), "train") == found[:1]
    assert data_files(["train.jsonl", "requirements.jsonl", "requirements.txt"], dataset()) == [
        "train.jsonl",
        "requirements.jsonl",
    ]
