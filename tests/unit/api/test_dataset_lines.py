from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.run_samples import make_suite
from traindyno.api.plans import data_lines
from traindyno.core.run.data_formats import DatasetFilesInvalid
from traindyno.core.run.workload import Dataset, FullRun
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Measurement, Suite


def suite_with(dataset: Dataset, **changes: object) -> Suite:
    suite = make_suite(measurement=Measurement(evaluate=True))
    return replace(suite, workload=replace(suite.workload, dataset=dataset, **changes))  # type: ignore[arg-type]


def write(folder: Path, *names: str) -> Path:
    for name in names:
        path = folder / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("text\none\n")
    return folder


def test_a_plan_names_the_file_of_each_split_and_the_unread_ones(tmp_path: Path) -> None:
    beside = write(tmp_path, "data.csv", "test.csv", "README.md")
    suite = suite_with(Dataset(path="data", evaluation_split="test"))
    assert list(data_lines(suite, beside=beside)) == [
        "data: split train reads data.csv",
        "data: split test reads test.csv",
        "data: not read: README.md",
    ]


def test_a_plan_says_that_evaluation_takes_a_part_of_the_training_data(tmp_path: Path) -> None:
    beside = write(tmp_path, *(f"part-{number}.csv" for number in range(8)))
    first, held_out = data_lines(suite_with(Dataset(path="data")), beside=beside)
    assert first.endswith("part-4.csv, part-5.csv and 2 more")
    assert "a random part of the training sequences" in held_out
    scheduled = replace(suite_with(Dataset(path="data"), full_run=FullRun(evaluate_every_steps=9)))
    scheduled = replace(scheduled, measurement=Measurement())
    assert list(data_lines(scheduled, beside=beside)) == [first, held_out]


def test_unreadable_files_are_refused_by_the_plan(tmp_path: Path) -> None:
    suite = suite_with(Dataset(path="data", evaluation_split="test"))
    with pytest.raises(DatasetFilesInvalid, match="belongs to the split 'test'"):
        list(data_lines(suite, beside=write(tmp_path, "a.csv", "b.csv")))


def test_data_elsewhere_and_a_scripts_own_have_no_lines(tmp_path: Path) -> None:
    beside = write(tmp_path, "a.csv", "b.json")
    assert data_lines(suite_with(Dataset(path="data"), task=Task.SCRIPT), beside=beside) == []
    for path in ("wikimedia/wikipedia", "s3://bucket/data"):
        assert data_lines(suite_with(Dataset(path=path)), beside=beside) == []


def test_a_folder_of_tokens_is_not_looked_at_as_data(tmp_path: Path) -> None:
    beside = write(
        tmp_path, "train/traindyno-data.json", "train/tokens.npy", "tokenizer/tokenizer.json"
    )
    assert data_lines(suite_with(Dataset(path="data")), beside=beside) == [
        "data: data is tokenised already"
    ]


@pytest.mark.parametrize(
    ("name", "target"), [("more", "shards"), ("b.csv", "shards/b.csv"), ("lost.csv", "nowhere")]
)
def test_an_unfollowed_link_is_not_passed_over(name: str, target: str, tmp_path: Path) -> None:
    """To a folder, to a file outside the folder, and to nothing."""
    beside = write(tmp_path, "a.csv", "README.md")
    (tmp_path / "shards").mkdir()
    (tmp_path / "shards" / "b.csv").write_text("text\none\n")
    (beside / "data" / name).symlink_to(tmp_path / target)
    shown = (
        f"{name} \\(links, which are not followed, or unreadable\\); only README.md, a.csv would "
        "be read"
    )
    with pytest.raises(
        DatasetFilesInvalid, match=rf"workload\.dataset\.path: data: .* missing: {shown}"
    ):
        data_lines(suite_with(Dataset(path="data")), beside=beside)


def test_a_link_beside_the_data_is_passed_over(tmp_path: Path) -> None:
    beside = write(tmp_path, "a.csv")
    for name in ("README.md", ".cache"):
        (beside / "data" / name).symlink_to(tmp_path)
    assert (
        data_lines(suite_with(Dataset(path="data")), beside=beside)[0]
        == "data: split train reads a.csv"
    )
