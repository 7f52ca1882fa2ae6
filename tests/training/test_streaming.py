"""Training sequences streamed from S3, by the real connector from a real S3 interface on
loopback.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.training.run_documents import parse_run, run_document, run_training, write_texts
from tests.training.s3_server import NEEDS_S3, s3_client, s3_server, upload
from tests.training.word_tokenizer import word_tokenizer
from traindyno.core.suite.choices import Task
from training.data.collate import Collate, Masking
from training.data.files import local_files
from training.data.stream import StreamedBatches, stream_steps
from training.process.run_settings import RunSettings

CAUSAL = Collate(task=Task.CAUSAL_LM, pad_to=None)


def run_of(**settings: Any) -> RunSettings:
    return parse_run(
        run_document(
            workload={"sequence_length": 4}, settings={"batch_size_per_device": 2, **settings}
        )
    )


def streamed(
    folder: Path, *, rank: int, ranks: int, collate: Collate = CAUSAL, first_batch: int = 0
) -> StreamedBatches:
    """Files of numbers, each number one token, in sequences of four."""
    tokenizer = word_tokenizer(["[UNK]", *map(str, range(1, 200))])
    return StreamedBatches(
        run_of(),
        local_files(folder),
        tokenizer,
        collate,
        data_rank=rank,
        data_world_size=ranks,
        first_batch=first_batch,
    )


def first_tokens(batches: StreamedBatches, count: int) -> list[int]:
    row = iter(batches)
    return [int(token) for _ in range(count) for token in next(row)["input_ids"][:, 0]]


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    folder = tmp_path / "numbers"
    folder.mkdir()
    for number in range(
        4
    ):  # file n holds 16 tokens: 4 sequences that begin with 16n+1, 16n+5, 16n+9, 16n+13
        (folder / f"{number}.txt").write_text(
            " ".join(str(16 * number + place) for place in range(1, 17))
        )
    return folder


def test_two_ranks_share_the_files_of_an_epoch_without_overlap(numbers: Path) -> None:
    mine, theirs = (first_tokens(streamed(numbers, rank=rank, ranks=2), 4) for rank in range(2))
    assert sorted(mine + theirs) == [4 * place + 1 for place in range(16)]


def test_more_ranks_than_files_share_the_sequences(numbers: Path) -> None:
    (numbers / "1.txt").unlink()
    (numbers / "2.txt").unlink()
    (numbers / "3.txt").unlink()
    assert [first_tokens(streamed(numbers, rank=rank, ranks=4), 1) for rank in range(4)] == [
        [1, 1],
        [5, 5],
        [9, 9],
        [13, 13],
    ]


def test_the_order_is_the_same_every_time_and_differs_between_epochs(numbers: Path) -> None:
    tokens = first_tokens(streamed(numbers, rank=0, ranks=1), 80)
    assert tokens == first_tokens(streamed(numbers, rank=0, ranks=1), 80)
    epochs = np.asarray(tokens).reshape(10, 16)
    assert all(sorted(epoch) == sorted(epochs[0]) for epoch in epochs)
    assert any(list(epoch) != list(epochs[0]) for epoch in epochs)


@pytest.mark.parametrize("workers", [0, 3])
@pytest.mark.parametrize(
    "ranks", [2, 3]
)  # 4 files: of two ranks with three workers, readers share the sequences
def test_a_resumed_stream_goes_on_with_the_next_batch(
    numbers: Path, workers: int, ranks: int
) -> None:
    """It crosses the end of epochs and masks the same tokens: masking depends on a sample's place
    in the stream.
    """
    masked = Collate(
        task=Task.MASKED_LM,
        masking=Masking(seed=1, mask_token=199, vocabulary_size=200),
        pad_to=None,
    )
    run = run_of(loader_workers=workers, gradient_accumulation_steps=2)
    steps = 7
    accumulated = 2

    def batches(done: int) -> list[dict[str, torch.Tensor]]:
        stream = streamed(
            numbers, rank=1, ranks=ranks, collate=masked, first_batch=done * accumulated
        )
        return [batch for step in stream_steps(stream, steps - done, run) for batch in step]

    whole = batches(0)
    for done in (1, 4):
        resumed = batches(done)
        assert len(resumed) == (steps - done) * accumulated
        for mine, theirs in zip(resumed, whole[done * accumulated :], strict=True):
            assert mine.keys() == theirs.keys()
            assert all(torch.equal(tensor, theirs[name]) for name, tensor in mine.items())
    assert not torch.equal(whole[0]["input_ids"], whole[2]["input_ids"])


@NEEDS_S3
def test_padded_batches_train_the_same_model_however_their_labels_are_spread(
    tmp_path: Path,
) -> None:
    """One file, so that two ranks take turns at its rows: their short and long ones are one
    process's batch of 8.
    """
    rows = "".join(
        f"word{row % 7} {'again ' * ((row % 2) * (2 + row % 9))}\n" for row in range(200)
    )
    spread: dict[str, Any] = {
        "strategy": "ddp",
        "batch_size_per_device": 2,
        "gradient_accumulation_steps": 2,
    }
    ends = {}
    with s3_server(tmp_path) as environment:
        s3 = s3_client(environment)
        s3.create_bucket(Bucket="corpus")
        s3.put_object(Bucket="corpus", Key="rows/train.csv", Body=f"text\n{rows}".encode())
        dataset = {"path": "s3://corpus/rows", "input_mode": "stream"}
        for processes, settings in {1: {"batch_size_per_device": 8}, 2: spread}.items():
            document = run_document(
                workload={"dataset": dataset}, settings={**settings, "packing": False}
            )
            folder = tmp_path / str(processes)
            folder.mkdir()
            ends[processes] = run_training(
                folder, document, None, processes=processes, environment=environment
            )
            assert ends[processes].exit_code == 0, ends[processes].output
    losses = [[step["loss"] for step in ends[2].of_kind("step", rank)] for rank in range(2)]
    together = [(mine + theirs) / 2 for mine, theirs in zip(*losses, strict=True)]
    assert together == pytest.approx([step["loss"] for step in ends[1].of_kind("step")], abs=1e-4)
    assert max(abs(mine - theirs) for mine, theirs in zip(*losses, strict=True)) > 0.5


@NEEDS_S3
def test_a_run_of_two_processes_streams_its_text_from_s3(tmp_path: Path) -> None:
    texts = write_texts(tmp_path / "texts")
    with s3_server(tmp_path) as environment:
        dataset = {"path": upload(texts, environment), "input_mode": "stream"}
        settings = {"strategy": "ddp", "loader_workers": 1, "gradient_accumulation_steps": 2}
        document = run_document(workload={"dataset": dataset}, settings=settings)
        end = run_training(tmp_path, document, None, processes=2, environment=environment)
    assert end.exit_code == 0, end.output
    for rank in range(2):
        steps = end.of_kind("step", rank)
        assert [step["samples"] for step in steps] == [8] * 10
        assert steps[-1]["loss"] < steps[0]["loss"]
