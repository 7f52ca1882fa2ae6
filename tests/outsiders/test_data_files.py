"""Reading people's data files gives their texts and labels, or says which file and row is not what
was expected.
"""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from datasets import Dataset as HubDataset
from datasets import DatasetDict

from tests.outsiders.data_files import CASES, DataCase
from traindyno.core.run.workload import Dataset
from traindyno.core.suite.choices import DatasetFormat
from training.data import file_text
from training.data.files import find_files, local_file
from training.data.rows import read_rows
from training.errors import WorkloadError


def write(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def dataset_of(case: DataCase) -> Dataset:
    changes = dict(case.dataset or {})
    if "format" in changes:
        changes["format"] = DatasetFormat(changes["format"])
    return replace(Dataset(path="data"), **changes)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_data_file_is_read_or_refused(case: DataCase, tmp_path: Path) -> None:
    root = write(tmp_path, case.files)
    if case.message is not None:
        with pytest.raises(WorkloadError, match=re.escape(case.message)):
            list(read_rows(dataset_of(case), root, "train", with_labels=case.with_labels))
        return
    batches = list(read_rows(dataset_of(case), root, "train", with_labels=case.with_labels))
    if case.texts is not None:
        assert [text for batch in batches for text in batch.texts] == list(case.texts)
    if case.labels is not None:
        assert [label for batch in batches for label in batch.labels or []] == list(case.labels)


def test_a_dataset_is_read_from_the_folder_of_save_to_disk(tmp_path: Path) -> None:
    """Both splits, from several shards, as the library itself names and writes them."""
    rows = {name: [f"{name} {number}" for number in range(5)] for name in ("train", "test")}
    made = DatasetDict(
        {name: HubDataset.from_dict({"text": texts}) for name, texts in rows.items()}
    )
    made.save_to_disk(tmp_path, num_shards={"train": 2, "test": 1})
    for name, texts in rows.items():
        batches = read_rows(
            Dataset(path="data", evaluation_split="test"), tmp_path, name, with_labels=False
        )
        assert [text for batch in batches for text in batch.texts] == texts


def test_a_link_to_a_folder_of_data_is_not_passed_over(tmp_path: Path) -> None:
    root = write(tmp_path / "data", {"a.csv": b"text\na\n", "more/b.csv": b"text\nb\n"})
    (root / ".hidden").symlink_to(root / "more")
    assert len(find_files(Dataset(path="data"), root, "train")) == 2
    (root / "linked").symlink_to(write(tmp_path / "elsewhere", {"c.csv": b"text\nc\n"}))
    with pytest.raises(
        WorkloadError,
        match="links to folders, which are not followed: linked; expected the folders",
    ):
        find_files(Dataset(path="data"), root, "train")


@pytest.mark.parametrize(
    ("encoding", "begin"), [("utf-8", 0), ("utf-16", 1)]
)  # at 0 it would be UTF-32's mark
def test_nul_is_found_wherever_it_is_and_with_its_line(
    encoding: str, begin: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_text, "CHUNK_BYTES", 5)
    text = "größe\nnach\nmaß\n"
    for place in range(begin, len(text) + 1):
        path = tmp_path / f"{place}.txt"
        path.write_bytes(f"{text[:place]}\0{text[place:]}".encode(encoding))
        line = text.count("\n", 0, place) + 1
        with pytest.raises(WorkloadError, match=rf"{place}\.txt holds NUL bytes in line {line},"):
            list(file_text.read_texts(local_file(path, path.name)))
