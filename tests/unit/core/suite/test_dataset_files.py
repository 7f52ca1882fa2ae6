"""Which files of a folder are data, and of which split, by their names."""

from typing import Any

import pytest

from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.dataset_files import DatasetFilesInvalid, data_files, data_suffix, format_of, split_files
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


def test_beside_a_structured_format_other_files_are_no_data() -> None:
    assert data_files(["a.csv", "b.tsv.gz", "words.txt"], dataset()) == ["a.csv", "b.tsv.gz"]
    assert data_files(["a.txt", "words"], dataset()) == ["a.txt", "words"]
    with pytest.raises(DatasetFilesInvalid, match=r"formats csv and parquet \(a.csv, b.parquet\)"):
        data_files(["a.csv", "b.parquet"], dataset())


def test_a_format_that_is_named_decides() -> None:
    names = ["a.csv", "b.parquet"]
    assert data_files(names, dataset(format=DatasetFormat.PARQUET)) == ["b.parquet"]
    # files without such a suffix are read as it
    assert data_files(["a.txt", "b.txt"], dataset(format=DatasetFormat.JSON)) == ["a.txt", "b.txt"]


def test_a_folder_without_data_lists_what_it_has() -> None:
    with pytest.raises(DatasetFilesInvalid, match=r"no data files; it has README, \.hidden"):
        data_files(["README", ".hidden"], dataset())
    with pytest.raises(DatasetFilesInvalid, match="it has no files"):
        data_files([], dataset())
    many = [f".hidden{index:02}" for index in range(12)]
    with pytest.raises(DatasetFilesInvalid, match=r"it has (\.hidden\d\d, ){9}\.hidden09$"):
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


def test_at_most_ten_files_are_listed() -> None:
    names = [f"part{index:02}.csv" for index in range(12)]
    with pytest.raises(DatasetFilesInvalid) as raised:
        split_files(names, dataset(), "validation")
    assert str(raised.value).count("(no split)") == 10
