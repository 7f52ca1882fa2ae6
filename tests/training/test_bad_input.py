"""What a person may give by mistake: each is refused in lines that say what was found and what is accepted."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

from traindyno.api.suite_loading import Suite, load_startable_suite
from traindyno.core.documents.stored import is_number
from traindyno.core.errors import SuiteInvalid

ROWS = [("a good film", "up"), ("a bad film", "down")] * 4
CSV = "\n".join(["text,label", *(",".join(row) for row in ROWS), ""])
OBJECTS = [{"text": text, "label": label} for text, label in ROWS]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"


def zipped(text: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("data.csv", text)
    return held.getvalue()


# Name of the file → its content. Every mistake in every kind that can have it.
FILES: dict[str, bytes] = {
    **{
        f"{name}.csv": CSV.replace(",", mark).encode()
        for name, mark in (("semicolon", ";"), ("bar", "|"), ("tab", "\t"))
    },
    **{f"empty.{kind}": b"" for kind in ("csv", "tsv", "jsonl", "json", "parquet", "csv.gz", "jsonl.gz")},
    **{f"pointer.{kind}": POINTER for kind in ("csv", "jsonl", "parquet", "json")},
    **{f"zip.{kind}": zipped(CSV) for kind in ("csv", "jsonl", "parquet", "json")},
    **{f"gzip.{kind}": gzip.compress(CSV.encode()) for kind in ("csv", "jsonl", "parquet")},
    **{f"wide.{kind}": CSV.encode("utf-16") for kind in ("jsonl",)},
    **{f"csv.{kind}": CSV.encode() for kind in ("jsonl", "json", "parquet", "csv.gz")},
    "rows.csv": json.dumps(OBJECTS).encode(),
    "header.csv": b"text,label\n",
    "quote.csv": CSV.replace("a good", '"a good', 1).encode(),
    "columns.csv": CSV.replace("film,up", "film,up,more", 1).encode(),
    "pretty.jsonl": json.dumps(OBJECTS[0], indent=2).encode(),
    "object.json": json.dumps(OBJECTS[0]).encode(),
    "numbers.jsonl": b"1\n2\n",
    "half.jsonl": json.dumps(OBJECTS[0]).encode()[:-4],
    "twice.csv": CSV.replace("text,label", "text,text", 1).encode(),
    "cut.parquet": b"PAR1" + bytes(64),
}


@pytest.mark.parametrize("name", FILES)
def test_data_that_cant_be_read_is_refused_at_plan(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    suite = {"task": "sequence-classification", "model": "nobody/bert", "dataset": name}
    with pytest.raises(SuiteInvalid) as caught:
        Suite.from_text(json.dumps({**suite, "matrix": {"batch_size_per_device": [1, 2]}}), folder=tmp_path, local=True)
    for problem in caught.value.problems:
        assert problem.path.startswith("workload.")
        assert "\n" not in problem.message
        assert any(
            word in problem.message for word in ("expected", "is read with", "name it", "name them", "unpack it")
        ), problem


VALUES = ("0777", "1:30", "yes", "'2'", "''", "[]", "{}", "-1", "1e400", ".nan", "2026-11-27", "null", "0x1F", "1_000")
FIELDS = (
    *(f"limits.{name}" for name in ("max_usd", "max_hours", "max_minutes", "max_job_seconds", "max_attempts")),
    *("measurement.trials", "confirm.minutes", "confirm", "tolerance", "goal", "training.seed", "workload.examples"),
)


@pytest.mark.parametrize("field", FIELDS)
def test_a_value_of_another_kind_is_named_once_and_nothing_that_follows_from_it(field: str, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text(CSV)
    for value in VALUES:
        suite: dict[str, Any] = {"task": "sequence-classification", "model": "nobody/bert", "dataset": "data.csv"}
        section, _, name = field.rpartition(".")
        given = yaml.safe_load(f"x: {value}")["x"]
        text = yaml.safe_dump({**suite, "matrix": {"batch_size_per_device": [1, 2]}})
        text += f"{section}: {{{name}: {value}}}\n" if section else f"{name}: {value}\n"
        try:
            Suite.from_text(text, folder=tmp_path, local=True)
        except SuiteInvalid as error:
            found = {
                problem.path.replace("measurement.confirm", "confirm").replace("max_hours", "max_minutes")
                for problem in error.problems
            }
            assert found == {field.replace("max_hours", "max_minutes")} or value == "{}", (value, error.problems)
        else:
            assert given is None or is_number(given) or isinstance(given, str), value


def classifier(folder: Path, **special: str) -> Path:
    vocabulary = {word: number for number, word in enumerate(["[UNK]", "[PAD]", "good", "bad", "film"])}
    words = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", **special)
    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=5)
    BertForSequenceClassification(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("case", ["none", "no pad", "pointer", "cut"])
def test_a_folder_of_a_model_that_cant_train_is_refused_at_plan(case: str, tmp_path: Path) -> None:
    folder = classifier(tmp_path / "model", **({} if case == "no pad" else {"pad_token": "[PAD]"}))
    weights = folder / "model.safetensors"
    weights.write_bytes({"pointer": POINTER, "cut": weights.read_bytes()[:-99]}.get(case, weights.read_bytes()))
    (tmp_path / "data.csv").write_text(CSV)
    path = tmp_path / "suite.yaml"
    matrix = {"batch_size_per_device": [1, 2]}
    suite = {"task": "sequence-classification", "model": "model", "dataset": "data.csv", "matrix": matrix}
    path.write_text(yaml.safe_dump(suite))
    told = {
        "no pad": "the tokenizer has neither a padding nor an end token",
        "pointer": "is a pointer of Git LFS",
        "cut": "a file of its weights can't be loaded: it is cut off, damaged",
    }
    if case == "none":
        load_startable_suite(path, local=True)
        return
    with pytest.raises(SuiteInvalid) as caught:
        load_startable_suite(path, local=True)
    (problem,) = caught.value.problems
    assert told[case] in problem.message
