"""Repositories for the stand-in of the Hub: a small GPT-2 with its tokenizer, and a dataset of
several files.
"""

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet
from transformers import GPT2Config, GPT2LMHeadModel

from tests.training.run_documents import MODELS
from tests.training.word_tokenizer import word_tokenizer

FILES = 6
VOCABULARY = 600
# None of these is copied: another format of the same weights, code, and other frameworks' weights.
UNNEEDED = (
    "pytorch_model.bin",
    "modeling.py",
    "tf_model.h5",
    "README.md",
    "onnx/model.onnx",
    "onnx/config.json",
)


def write_dataset(folder: Path, *, rows: int) -> None:
    """Writes files with so many rows each, of text that does not compress well."""
    folder.mkdir(parents=True)
    for number in range(FILES):
        places = range(number * rows, (number + 1) * rows)
        texts = [
            f"row {row} has {(row * 7919) % 10007} and {row * row * 2654435761 % 2**61}"
            for row in places
        ]
        table = pa.table({"text": texts, "more": texts})
        parquet.write_table(
            table, folder / f"train-{number:05d}-of-{FILES:05d}.parquet", row_group_size=1000
        )


def write_model(folder: Path) -> None:
    values = {name: value for name, value in MODELS["gpt2"].items() if name != "model_type"}
    GPT2LMHeadModel(
        GPT2Config(**values, vocab_size=VOCABULARY, bos_token_id=0, eos_token_id=0)
    ).save_pretrained(folder)
    words = ("<end>", "<unk>", *map(str, range(2, VOCABULARY)))
    word_tokenizer(words, eos_token="<end>", unk_token="<unk>").save_pretrained(folder)
    for name in UNNEEDED:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("not needed")
