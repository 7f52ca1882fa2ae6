"""What the frozen scripts read: every reader its own part, in full lengths, from files or from
S3.
"""

import io
import itertools
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
import yaml
from botocore.response import StreamingBody
from botocore.stub import Stubber
from pyarrow import parquet as pq

from experiments.albert_scaling import masked_passages, text_lines, wikipedia_files
from experiments.bert_trainium import review_files
from experiments.bert_trainium.reviews import read_reviews
from experiments.gpt2_compiler import text_blocks
from experiments.gptj_parallel import sst2_files
from experiments.gptj_parallel import text_blocks as gptj_blocks
from tests.training.hub_server import hub_server
from tests.training.jobs import REPO_ROOT
from tests.training.s3_server import NEEDS_S3, s3_server, upload

pytestmark = pytest.mark.nightly

TEXTS = {"a.txt": "one two three\n\nfour five\n", "b.txt": "six\n"}
SENTENCES = {"train": ["1 2 3", '4 " 5', "6 7"], "dev": ["8 9", "10 11 é"]}


class Words:
    """A tokenizer of numbers: each word is its own token."""

    cls_token_id = -1
    sep_token_id = -2

    def __call__(self, text: Any, **_options: Any) -> dict[str, Any]:
        return {
            "input_ids": [self._tokens(sentence) for sentence in text]
            if isinstance(text, list)
            else self._tokens(text)
        }

    def _tokens(self, text: str) -> list[int]:
        return [int(word) for word in text.split()]


def first_passages(lines: list[str], rank: int, world_size: int, count: int) -> list[list[int]]:
    passages = masked_passages.Passages(lines, Words(), 4, rank, world_size)
    return [passage["input_ids"] for passage in itertools.islice(passages, count)]


def test_each_process_reads_its_own_lines_in_full_passages_and_begins_again() -> None:
    lines = ["1 2 3", "10 20", "4 5", "30 40"]
    # Two tokens between the marks of begin and end; the fifth token of rank 0 fills no passage.
    assert first_passages(lines, 0, 2, 3) == [[-1, 1, 2, -2], [-1, 3, 4, -2], [-1, 1, 2, -2]]
    assert first_passages(lines, 1, 2, 2) == [[-1, 10, 20, -2], [-1, 30, 40, -2]]


def test_text_too_short_for_a_process_is_refused() -> None:
    with pytest.raises(ValueError, match=r"reader 2 of 3 found no passage of 4 tokens"):
        first_passages(["1 2", "3 4"], 2, 3, 1)


def test_lines_streamed_from_s3_equal_the_same_files_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    client = boto3.client(
        "s3", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test"
    )
    keys = [f"albert/{name}" for name in TEXTS]
    with Stubber(client) as s3:
        listed = {"Bucket": "texts", "Prefix": "albert/"}
        s3.add_response("list_objects_v2", {"Contents": [{"Key": key} for key in keys]}, listed)
        for key, text in zip(keys, TEXTS.values(), strict=True):
            body = StreamingBody(io.BytesIO(text.encode()), len(text))
            s3.add_response("get_object", {"Body": body}, {"Bucket": "texts", "Key": key})
        monkeypatch.setattr(text_lines, "s3_client", lambda: client)
        streamed = list(text_lines.S3Lines("s3://texts/albert/"))
        s3.assert_no_pending_responses()
    assert (
        streamed
        == list(text_lines.FolderLines(str(tmp_path)))
        == ["one two three", "four five", "six"]
    )


def test_a_place_outside_s3_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'/data/albert': expected s3://bucket/prefix"):
        text_lines.bucket_and_prefix("/data/albert")


def write_csv(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(rows))
    return path


def test_reviews_are_shared_evenly_and_no_more_are_read_than_the_steps_need(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "train.csv",
        ["label,title,content", *[f"{n % 2},t,review {n}" for n in range(7)]],
    )
    assert read_reviews(path, 0, 2) == [("review 0", 0), ("review 2", 0), ("review 4", 0)]
    assert read_reviews(path, 1, 2) == [("review 1", 1), ("review 3", 1), ("review 5", 1)]
    assert read_reviews(path, 1, 2, most=4) == [("review 1", 1), ("review 3", 1)]


@pytest.mark.parametrize(
    ("rows", "processes", "message"),
    [
        (
            ["text,label", "good,1"],
            1,
            r"no column content; found text, label; expected content and label",
        ),
        (
            ["content,label", "good,1"],
            2,
            r"holds 1 reviews; expected one or more for each of 2 processes",
        ),
    ],
)
def test_indivisible_reviews_are_refused(
    tmp_path: Path, rows: list[str], processes: int, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        read_reviews(write_csv(tmp_path / "train.csv", rows), 0, processes)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.txt", "1 2 3\n4 5 6 7\n"),
        ("text.csv", "idx,sentence\n0,1 2 3\n1,4 5 6 7\n"),
        ("text.json", '{"text": "1 2 3"}\n{"text": "4 5 6 7"}\n'),
    ],
)
def test_text_of_each_format_becomes_full_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str
) -> None:
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    (tmp_path / name).write_text(content)
    blocks = text_blocks.in_blocks(
        text_blocks.load_text(None, None, str(tmp_path / name)), Words(), 3
    )
    assert blocks[:] == {"input_ids": [[1, 2, 3], [4, 5, 6]], "labels": [[1, 2, 3], [4, 5, 6]]}


def test_a_folder_without_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "picture.png").write_bytes(b"")
    with pytest.raises(
        ValueError, match=r"no text was found at .* expected dataset_name, or files of one of"
    ):
        text_blocks.load_text(None, None, str(tmp_path))


def write_sst2(folder: Path, suffix: str) -> None:
    """Write the files of GLUE's own archive, or those of the Hub, which have a further column."""
    folder.mkdir()
    for split, sentences in SENTENCES.items():
        rows = [
            {"idx": place, "sentence": text, "label": place % 2}
            for place, text in enumerate(sentences)
        ]
        if suffix == ".tsv":
            lines = ["sentence\tlabel", *(f"{row['sentence']}\t{row['label']}" for row in rows)]
            (folder / f"{split}.tsv").write_text("\n".join(lines))
        else:
            name = {"train": "train", "dev": "validation"}[split]
            pq.write_table(pa.Table.from_pylist(rows), folder / f"{name}-00000-of-00001.parquet")


@pytest.mark.parametrize("suffix", [".tsv", ".parquet"])
def test_the_frozen_script_reads_the_files_made_of_sst2(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The paths are those of original.yaml: dataset/train/ is its channel train,
    dataset/validation/ is test.
    """
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    write_sst2(tmp_path / "glue", suffix)
    sst2_files.main([str(tmp_path / "dataset"), "--glue", str(tmp_path / "glue")])
    channels = yaml.safe_load((REPO_ROOT / "suites/gptj-parallel/original.yaml").read_text())[
        "workload"
    ]
    uris = {"train": channels["dataset"]["path"], "dev": channels["channels"]["test"]}
    assert all(uri.startswith("s3://your-bucket/dataset/") for uri in uris.values())
    for split, uri in uris.items():
        text = gptj_blocks.load_text(
            None, None, str(tmp_path / uri.replace("s3://your-bucket/", ""))
        )
        assert list(text["sentence"]) == SENTENCES[split]
        assert sorted(text.column_names) == ["label", "sentence"]
        numbers = Words()
        text = text.map(
            lambda row: {
                "sentence": "".join(
                    character for character in row["sentence"] if character in "0123456789 "
                )
            }
        )
        tokens = [
            token
            for text_tokens in numbers(list(text["sentence"]))["input_ids"]
            for token in text_tokens
        ]
        blocks = gptj_blocks.in_blocks(text, numbers, 2)
        assert list(blocks["input_ids"]) == [
            tokens[start : start + 2] for start in range(0, len(tokens) - 1, 2)
        ]


def test_a_copy_of_sst2_without_a_split_or_a_column_is_refused(tmp_path: Path) -> None:
    write_sst2(tmp_path / "glue", ".tsv")
    (tmp_path / "glue/dev.tsv").rename(tmp_path / "glue/test.tsv")
    with pytest.raises(
        ValueError, match=r"a file of the split validation .*found test\.tsv, train\.tsv"
    ):
        sst2_files.write_files(str(tmp_path / "glue"), tmp_path / "dataset")
    (tmp_path / "glue/train.tsv").write_text("text\tlabel\n1 2\t0")
    with pytest.raises(ValueError, match="expected the columns sentence, label, found text, label"):
        sst2_files.write_files(str(tmp_path / "glue"), tmp_path / "dataset")


def test_the_frozen_script_reads_the_reviews_made_of_amazon_polarity(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    texts = ['good, "very"', "two\nlines", "bad é"]
    rows = [{"label": place % 2, "title": "t", "content": text} for place, text in enumerate(texts)]
    (tmp_path / "polarity").mkdir()
    for split in ("train", "test"):
        pq.write_table(
            pa.Table.from_pylist(rows), tmp_path / "polarity" / f"{split}-00000-of-00001.parquet"
        )
    review_files.main([str(tmp_path / "data"), "--polarity", str(tmp_path / "polarity")])
    for split in ("train", "test"):
        assert read_reviews(tmp_path / "data" / f"{split}.csv", 0, 1) == [
            (text, place % 2) for place, text in enumerate(texts)
        ]
    (tmp_path / "polarity/test-00000-of-00001.parquet").unlink()
    with pytest.raises(ValueError, match=r"expected test\*\.parquet or test\*\.csv, found neither"):
        review_files.write_files(str(tmp_path / "polarity"), tmp_path / "data")


def test_wikipedia_is_written_as_lines_until_they_are_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    rows = [{"title": str(n), "text": f"{n} é\n\nend {n} "} for n in range(9)]
    (tmp_path / "copy").mkdir()
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "copy" / "train.parquet")
    wikipedia_files.main([str(tmp_path / "all"), "--wikipedia", str(tmp_path / "copy")])
    lines = [line for n in range(9) for line in (f"{n} é", f"end {n}")]
    assert list(text_lines.FolderLines(str(tmp_path / "all"))) == lines
    # an article is 11 bytes: 5 reach 50, two files of 3 and 2
    assert wikipedia_files.write_files(rows, tmp_path / "some", 50, file_bytes=30) == 55
    assert [
        len(path.read_text().split("\n")) for path in sorted((tmp_path / "some").iterdir())
    ] == [7, 5]


@NEEDS_S3
def test_pretrained_weights_are_copied_from_s3_with_their_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(REPO_ROOT / "tests" / "training" / "stand_ins")
    from experiments.gptj_parallel.weights import copy_from_s3

    (tmp_path / "weights").mkdir()
    for name in ("config.json", "weights.bin"):
        (tmp_path / "weights" / name).write_text(name)
    with s3_server(tmp_path) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        uri = upload(tmp_path / "weights", environment)
        copy_from_s3(uri, tmp_path / "copy")
        with pytest.raises(
            ValueError, match="expected a prefix that holds a model's files, found none"
        ):
            copy_from_s3(f"{uri}/none", tmp_path / "copy")
    assert {path.name: path.read_text() for path in (tmp_path / "copy").iterdir()} == {
        name: name for name in ("config.json", "weights.bin")
    }


@pytest.mark.parametrize("pack", ["gpt2_compiler", "gptj_parallel"])
def test_a_dataset_is_loaded_from_the_hub_by_its_name(pack: str, tmp_path: Path) -> None:
    data = tmp_path / "hub" / "me" / "data"
    data.mkdir(parents=True)
    pq.write_table(pa.table({"sentence": ["one", "two"]}), data / "train-00000-of-00001.parquet")
    program = (
        f"from experiments.{pack}.text_blocks import load_text; print(*load_text('me/data', None, "
        "None)['sentence'])"
    )
    with hub_server(tmp_path / "hub", tmp_path / "home") as hub:
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=hub.environment,
            cwd=REPO_ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    assert done.stdout.split() == ["one", "two"]
