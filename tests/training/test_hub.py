"""A dataset and a model by their names on the Hub: streamed and copied, from a stand-in that counts
what it sends.
"""

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from datasets import Features, Image, Value
from pyarrow import parquet

from tests.training.hub_repositories import write_dataset, write_model
from tests.training.hub_server import COMMIT, Hub, hub_server
from tests.training.jobs import JobEnd
from tests.training.run_documents import (
    KEY,
    SEQUENCE_LENGTH,
    run_document,
    run_preparation,
    run_training,
    write_texts,
)
from traindyno.core.run.tokens import TOKENS_MANIFEST
from training.data.sequences import read_sequences
from training.models.hub import needed_files

ROWS = 20_000
LARGE_ROWS = 20_000
TOO_LARGE_BYTES = 2**42
NEEDED = {
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
}
SHARDS = [f"model-0000{number}-of-00002.safetensors" for number in (1, 2)]
PICKLED = [f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2)]


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hub")
    write_dataset(root / "me" / "data", rows=ROWS)
    write_model(root / "me" / "model")
    (root / "me" / "bare").mkdir()
    (root / "me" / "bare" / "config.json").write_text(
        (root / "me" / "model" / "config.json").read_text()
    )
    write_numbered_rows(root / "me" / "numbered")
    write_model(root / "me" / "vast")
    os.truncate(root / "me" / "vast" / "model.safetensors", TOO_LARGE_BYTES)  # a sparse file
    return root


def write_numbered_rows(folder: Path) -> None:
    """Row 7 is the word 7, many times; and a picture, whose decoder is not installed."""
    folder.mkdir()
    texts = [" ".join([str(number)] * 2 * SEQUENCE_LENGTH) for number in range(2, 52)]
    columns = Features({"picture": Image(), "text": Value("string")})
    picture = {"bytes": b"no picture", "path": None}
    rows = [{"picture": picture, "text": text} for text in texts]
    parquet.write_table(
        pa.Table.from_pylist(rows, schema=columns.arrow_schema), folder / "train.parquet"
    )


@pytest.fixture(scope="module")
def started(repositories: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """One for all tests, because the process that forks their jobs knows its address."""
    with hub_server(repositories, tmp_path_factory.mktemp("home")) as hub:
        yield hub


@pytest.fixture
def hub(started: Hub) -> Hub:
    """It has sent nothing, and nothing of it is in the cache."""
    shutil.rmtree(started.environment["HF_HOME"], ignore_errors=True)
    started.sent.clear()
    return started


def prepared(folder: Path, hub: Hub, workload: dict[str, Any], **asked: Any) -> JobEnd:
    document = run_document(
        "gpt2", workload={"model": {"path": "me/model"}, "tokenizer": None, **workload}
    )
    return run_preparation(
        folder, document, None, environment=hub.environment, **{"packing": None, **asked}
    )


def test_a_dataset_by_its_name_is_streamed_and_no_further_than_the_runs_need(
    tmp_path: Path, hub: Hub
) -> None:
    data = {"dataset": {"path": "me/data"}, "examples": 10**6}
    end = prepared(tmp_path / "job", hub, data, packing=True, sequences=200)
    assert end.exit_code == 0, end.output
    sequences = read_sequences(end.folder / "model" / "train")
    assert (len(sequences), sequences.uniform_length) == (200, SEQUENCE_LENGTH)
    assert {name for name in hub.sent if name.endswith(".parquet")} == {
        "train-00000-of-00006.parquet"
    }
    assert not list(Path(hub.environment["HF_HOME"]).rglob("*.arrow"))  # nothing of it is stored


@pytest.mark.nightly
def test_a_preparation_ends_while_the_rest_of_a_large_file_is_on_its_way(tmp_path: Path) -> None:
    """Arrow reads ahead in threads, 32 MiB at a time, which Python's teardown would abort, or wait
    for.
    """
    data = tmp_path / "hub" / "me" / "data"
    data.mkdir(parents=True)
    texts = [random.Random(row).randbytes(1600).hex(" ", 5) for row in range(LARGE_ROWS)]
    table = pa.table({"text": texts})
    parquet.write_table(
        table, data / "train.parquet", row_group_size=500, compression="none", use_dictionary=False
    )
    write_model(tmp_path / "hub" / "me" / "model")
    with hub_server(tmp_path / "hub", tmp_path / "home", delay_seconds=1.0) as slow:
        end = prepared(
            tmp_path / "job",
            slow,
            {"dataset": {"path": "me/data"}},
            packing=False,
            sequences=200,
            is_forked=False,
        )
    assert end.exit_code == 0, end.output
    assert len(read_sequences(end.folder / "model" / "train")) == 200


def numbers(folder: Path) -> set[int]:
    return {int(number) for number in read_sequences(folder).tokens} - {0}  # 0 ends a text


def test_a_split_may_be_a_slice_and_unneeded_columns_are_not_decoded(
    tmp_path: Path, hub: Hub
) -> None:
    data = {"path": "me/numbered", "split": "train[:20%]", "evaluation_split": "train[-5:]"}
    end = prepared(tmp_path / "job", hub, {"dataset": data}, packing=False)
    assert end.exit_code == 0, end.output
    assert numbers(end.folder / "model" / "train") == set(range(2, 12))
    assert numbers(end.folder / "model" / "evaluation") == set(range(47, 52))


def test_a_column_missing_in_a_dataset_of_the_hub_is_named(tmp_path: Path, hub: Hub) -> None:
    end = prepared(
        tmp_path / "job",
        hub,
        {"dataset": {"path": "me/data", "text_column": "words"}},
        packing=True,
    )
    assert end.exit_code != 0
    assert "me/data has no column 'words'; its columns are text, more" in end.failure


def test_a_models_copy_holds_the_files_of_a_run_once_and_a_run_needs_no_hub(
    tmp_path: Path, hub: Hub, repositories: Path
) -> None:
    end = prepared(tmp_path / "job", hub, {"dataset": {"format": "synthetic"}})
    assert end.exit_code == 0, end.output
    copy = end.folder / "model"
    assert {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()} == {
        *NEEDED,
        TOKENS_MANIFEST,
    }
    assert set(hub.sent) <= NEEDED
    assert (
        hub.sent["model.safetensors"]
        == (repositories / "me/model/model.safetensors").stat().st_size
    )
    assert f"model me/model at commit {COMMIT}: {len(NEEDED)} files" in end.output
    assert json.loads((copy / TOKENS_MANIFEST).read_text())["key"] == KEY
    (tmp_path / "run").mkdir()
    # The lab's request names the copy, and this process is offline.
    changes = {"model": {"path": "s3://bucket/prepared/copy/"}, "tokenizer": None}
    document = run_document("gpt2", workload=changes, measurement={"max_steps": 2})
    texts = write_texts(tmp_path / "texts")
    channel = {"SM_CHANNEL_MODEL": str(copy)}
    run = run_training(tmp_path / "run", document, texts, environment=channel)
    assert run.exit_code == 0, run.output
    assert len(run.of_kind("step")) == 2


def test_a_model_without_weights_is_named(tmp_path: Path, hub: Hub) -> None:
    asked = {"model": {"path": "me/bare"}, "dataset": {"format": "synthetic"}}
    end = prepared(tmp_path / "job", hub, asked)
    assert end.exit_code != 0
    assert "the model me/bare has no weights in safetensors or PyTorch's format" in end.failure


def test_a_model_too_large_for_the_volume_is_refused_before_it_is_loaded(
    tmp_path: Path, hub: Hub
) -> None:
    asked = {"model": {"path": "me/vast"}, "dataset": {"format": "synthetic"}}
    end = prepared(tmp_path / "job", hub, asked)
    assert end.exit_code != 0
    assert "the model me/vast needs 4,398.0 GB" in end.failure
    assert "expected a larger job.volume_size_gb" in end.failure
    assert "user_code_error" in end.failure
    assert "model.safetensors" not in hub.sent


@pytest.mark.parametrize(
    ("weights", "kept"),
    [
        (["model.safetensors", "pytorch_model.bin"], ["model.safetensors"]),
        (
            ["pytorch_model.bin", "flax_model.msgpack", "tf_model.h5", "model.fp16.safetensors"],
            ["pytorch_model.bin"],
        ),
        (
            [*SHARDS, "model.safetensors.index.json", *PICKLED, "pytorch_model.bin.index.json"],
            [*SHARDS, "model.safetensors.index.json"],
        ),
        ([*PICKLED, "pytorch_model.bin.index.json"], [*PICKLED, "pytorch_model.bin.index.json"]),
    ],
    ids=["both", "pickled only", "shards of both", "pickled shards"],
)
def test_weights_are_copied_in_one_format_and_pickled_ones_only_without_others(
    weights: list[str], kept: list[str]
) -> None:
    others = ["config.json", "vocab.json", "merges.txt", "spiece.model", "chat_template.jinja"]
    ignored = [
        "README.md",
        ".gitattributes",
        "modeling.py",
        "onnx/config.json",
        "coreml/model.safetensors",
    ]
    assert needed_files([*weights, *others, *ignored]) == sorted([*kept, *others])
    assert needed_files([*others, *ignored]) == []
