"""Preparing data takes memory for a part of it, reads no more than is needed, and gives the same
tokens as one read.
"""

import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from tests.training.forked_jobs import run_forked
from tests.training.jobs import SCRIPTS
from tests.training.word_tokenizer import word_tokenizer
from traindyno.core.run.workload import Dataset, Workload
from traindyno.core.suite.choices import Task
from training.data import file_text, files
from training.data import prepare as tokenizers
from training.data.files import local_file
from training.data.prepare import prepare, train_tokenizer
from training.data.sequences import SequenceWriter, read_sequences
from training.errors import WorkloadError, explained, volume_of

LINE = " ".join(f"word{number:05d}" for number in range(50))
FULL = Path("/dev/full")
ASKED = Workload(
    task=Task.CAUSAL_LM, examples=10_000, sequence_length=6, dataset=Dataset(path="data")
)
WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "b", "c")
TOKENIZER = word_tokenizer(WORDS, unk_token="[UNK]", sep_token="[SEP]")
SMALL = 2**23
LARGE = 5 * 2**23


def write(folder: Path, kind: str, size: int) -> Path:
    folder.mkdir()
    lines = [LINE] * (size // len(LINE))
    if kind == "parquet":
        parquet.write_table(
            pa.table({"text": lines}), folder / "train.parquet", row_group_size=1000
        )
        return folder
    if kind == "arrow":
        table = pa.table({"text": lines})
        with pa.ipc.new_stream(folder / "train.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=1000)
        return folder
    shown = [json.dumps({"text": line}) for line in lines] if kind == "json" else lines
    head = ["text"] if kind == "csv" else []
    (folder / f"train.{kind}").write_text("\n".join([*head, *shown]))
    return folder


def peak_bytes(folder: Path, kind: str, size: int) -> int:
    data = write(folder, kind, size)
    job = folder.with_name(f"{folder.name}-job")
    job.mkdir()
    ended = run_forked(job, SCRIPTS / "prepare_measured.py", str(data), str(job / "out"), kind)
    assert ended.exit_code == 0, ended.output
    tokens = sum(read_sequences(job / "out" / "train").lengths)
    assert tokens > size / len("word00000 ") * 0.95
    return int(ended.output.splitlines()[-1])


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="the largest memory is read from Linux"
)
@pytest.mark.parametrize("kind", ["text", "csv", "json", "parquet", "arrow"])
def test_memory_does_not_grow_with_the_data(kind: str, tmp_path: Path) -> None:
    """Less than a fifth of each further byte of data stays in memory; all tokens at once would be
    more than all.
    """
    growth = peak_bytes(tmp_path / "large", kind, LARGE) - peak_bytes(
        tmp_path / "small", kind, SMALL
    )
    assert growth / (LARGE - SMALL) < 0.2, (
        f"{growth:,} bytes more for {LARGE - SMALL:,} bytes of data"
    )


def test_a_vocabulary_is_trained_on_the_beginning_of_the_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second file is not even text."""
    (tmp_path / "1.txt").write_text(LINE)
    (tmp_path / "2.txt").write_bytes(b"\xff\xff")
    monkeypatch.setattr(tokenizers, "TRAINING_CHARACTERS", len(LINE) // 2)
    assert len(train_tokenizer(ASKED, tmp_path, 270)) == 270


@pytest.mark.parametrize(
    "separator", ["\n", "\n\n", " ", ""], ids=["lines", "paragraphs", "words", "one word"]
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_pieces_of_a_text_are_the_text(
    separator: str, encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_text, "PIECE_CHARACTERS", 40)
    monkeypatch.setattr(file_text, "CHUNK_BYTES", 7)  # cuts characters of several bytes
    text = separator.join(f"grüße{number}" for number in range(50))
    path = tmp_path / "train.txt"
    path.write_bytes(text.encode(encoding))
    pieces = list(file_text.text_pieces(local_file(path, path.name)))
    assert "".join(pieces) == text
    assert len(pieces) > 5
    assert all(len(piece) <= 80 for piece in pieces)
    if separator:
        assert all(piece.lstrip(" ").startswith("grüße") for piece in pieces)


def test_a_long_text_is_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One piece and many pieces give the same tokens, and one end of text."""
    (tmp_path / "data").mkdir()
    for name in ("1.txt", "2.txt"):
        (tmp_path / "data" / name).write_text("\n".join(["a", "b", "c", "b", "a"] * 400))
    token_lists = []
    for pieces in (2**20, 300):
        monkeypatch.setattr(file_text, "PIECE_CHARACTERS", pieces)
        for packing in (True, False):
            out = tmp_path / f"out-{pieces}-{packing}"
            prepare(ASKED, TOKENIZER, tmp_path / "data", out, packing=packing)
            token_lists.append(read_sequences(out / "train").tokens.tolist())
    assert token_lists[:2] == token_lists[2:]
    assert token_lists[0].count(3) == 2  # [SEP] ends each of the two files


@pytest.mark.parametrize("separator", ["\n", " "], ids=["lines", "words"])
def test_byte_level_tokens_of_pieces_equal_those_of_the_whole_text(
    separator: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.txt").write_text(
        separator.join(f"größe {number}'s" for number in range(500))
    )
    token_lists = []
    for pieces in (2**20, 300):
        monkeypatch.setattr(file_text, "PIECE_CHARACTERS", pieces)
        out = tmp_path / f"out-{pieces}"
        prepare(
            ASKED,
            train_tokenizer(ASKED, tmp_path / "train.txt", 300),
            tmp_path / "train.txt",
            out,
            packing=True,
        )
        token_lists.append(read_sequences(out / "train").tokens.tolist())
    assert token_lists[0] == token_lists[1]


def test_no_more_of_a_text_is_read_than_its_examples_need(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_text, "CHUNK_BYTES", 1000)
    monkeypatch.setattr(file_text, "PIECE_CHARACTERS", 5000)
    read: list[int] = []
    monkeypatch.setattr(files, "_open_local", lambda path: Counting(path.read_bytes(), read))
    (tmp_path / "train.txt").write_text("\n".join(["a b c"] * 100_000))
    prepare(replace(ASKED, examples=100), TOKENIZER, tmp_path, tmp_path / "out", packing=True)
    assert len(read_sequences(tmp_path / "out" / "train")) == 100
    assert sum(read) <= 30_000


class Counting(io.BytesIO):
    def __init__(self, content: bytes, read: list[int]) -> None:
        super().__init__(content)
        self._read = read

    def read(self, size: int | None = -1, /) -> bytes:
        content = super().read(size)
        self._read.append(len(content))
        return content


@pytest.mark.parametrize("vocabulary_size", [100, 2**16, 2**16 + 1])
@pytest.mark.parametrize("lengths", [[], [3], [3, 1, 0, 70_000]], ids=str)
def test_the_file_written_piece_by_piece_is_numpys_own(
    vocabulary_size: int, lengths: list[int], tmp_path: Path
) -> None:
    random = np.random.default_rng(1)
    rows = [random.integers(0, vocabulary_size, length) for length in lengths]
    writer = SequenceWriter(tmp_path / "train", vocabulary_size)
    for row in rows:
        writer.append(row)
    writer.close()
    together = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    kind = np.uint16 if vocabulary_size <= 2**16 else np.uint32
    np.save(tmp_path / "own.npy", together.astype(kind))
    assert (tmp_path / "train" / "tokens.npy").read_bytes() == (tmp_path / "own.npy").read_bytes()
    sequences = read_sequences(tmp_path / "train") if lengths else None
    assert sequences is None or sequences.lengths.tolist() == lengths


@pytest.mark.skipif(not FULL.exists(), reason="a file that is always full is Linux's")
def test_a_volume_filled_by_loading_a_model_is_not_called_an_unknown_model(
    tmp_path: Path,
) -> None:
    with (
        pytest.raises(
            WorkloadError, match=r"the model me/model needs more, .*larger job\.volume_size_gb"
        ),
        volume_of("the model me/model", tmp_path),
        explained("the model me/model"),
    ):
        FULL.write_bytes(b"a part")
