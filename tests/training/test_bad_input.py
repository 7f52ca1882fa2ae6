"""What a person may give by mistake: each is refused in lines that say what was found and what is
accepted.
"""

import bz2
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from transformers import BertConfig, BertForSequenceClassification

from tests.training.word_tokenizer import word_tokenizer
from traindyno.api.suite_loading import Suite, load_startable_suite
from traindyno.core.documents.stored import is_number
from traindyno.core.errors import SuiteInvalid
from training.data import file_text
from training.data.file_text import text_lines
from training.data.files import local_file
from training.errors import WorkloadError

ROWS = [("a good film", "up"), ("a bad film", "down")] * 4
CSV = "\n".join(["text,label", *(",".join(row) for row in ROWS), ""])
OBJECTS = [{"text": text, "label": label} for text, label in ROWS]
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n"
#: What a person mistakes, and is refused for → the words that say it
SAID = {
    "sep;.csv": "delete its first line, which only spreadsheets read",
    "bar.csv": "a .csv file is read with commas between its columns",
    "deep.jsonl": "values of more levels within each other than can be read",
    "joined.csv": "joined.csv, line 10: a byte order mark begins the line",
    "zstd.csv.gz": "zstd.csv.gz can't be unpacked: it is packed by zstd: unpack it",
    "plain.csv.gz": "plain.csv if it is not packed",
    "twice.csv.gz": "is packed twice: unpack it once",
    "other.csv.gz": "it is packed by bzip2: name it other.csv.bz2",
    "backslash.csv": (
        "backslash.csv, line 2: text follows a closing quote; expected each quoted value closed"
    ),
    "stray.csv": "stray.csv, line 4: text follows a closing quote",
    "last.csv": "a quote is open; expected each quoted value closed",
    "header of other names.csv": "has no rows; expected at least one",
    "header without an end.csv": "has no rows; expected at least one",
    "no label.csv": "no label.csv, row 9: the label is missing",
    "rows.csv": "it is JSON: name it .jsonl",
    "page.csv": "it is HTML or XML",
    "csv.jsonl": "it begins with 'text,label'",
    "below an empty line.jsonl": "line 2 is not JSON: one object in several lines",
    "lists.jsonl": "a list on each line; expected one object a line",
}
VALUES = (
    "0777",
    "1:30",
    "yes",
    "'2'",
    "''",
    "[]",
    "{}",
    "-1",
    "1e400",
    ".nan",
    "2026-11-27",
    "null",
    "0x1F",
    "1_000",
)


def zipped(text: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("data.csv", text)
    return held.getvalue()


# Name of the file → its content. Every mistake in every kind that can have it.
FILES: dict[str, bytes] = {
    **{f"{name}.csv": CSV.replace(",", mark).encode() for name, mark in (("bar", "|"),)},
    **{
        f"empty.{kind}": b""
        for kind in ("csv", "tsv", "jsonl", "json", "parquet", "csv.gz", "jsonl.gz")
    },
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
    "deep without an end.jsonl": b'{"text": ' + b"[" * 100_000 + b"\n",
    "half.jsonl": json.dumps(OBJECTS[0]).encode()[:-4],
    "twice.csv": CSV.replace("text,label", "text,text", 1).encode(),
    "cut.parquet": b"PAR1" + bytes(64),
    **{f"sep{mark}.csv": f"sep={mark}\n{CSV.replace(',', mark)}".encode() for mark in ";,"},
    **{
        f"zstd.{kind}": b"\x28\xb5\x2f\xfd" + bytes(40)
        for kind in ("csv", "jsonl", "csv.gz", "csv.bz2", "csv.xz")
    },
    **{f"plain.csv.{kind}": CSV.encode() for kind in ("gz", "bz2", "xz")},
    "twice.csv.gz": gzip.compress(gzip.compress(CSV.encode())),
    "other.csv.gz": bz2.compress(CSV.encode()),
    "cut.csv.gz": gzip.compress(CSV.encode())[:-9],
    "backslash.csv": CSV.replace("a good", r'"a \"good\"', 1).encode(),
    "stray.csv": b'text,label\n"a film,up\nb film,down\nc "film",up\nd film,down\n',
    "last.csv": f'{CSV}a last film,"down\n'.encode(),
    "header of other names.csv": b"review,sentiment\n",
    "header without an end.csv": b"text,label",
    "no label.csv": f"{CSV}a good film,\n".encode(),
    "nothing.jsonl": b"{}\n{}\n",
    "page.csv": b"<!DOCTYPE html>\n<p>404, not found</p>\n",
    "below an empty line.jsonl": b"\n" + json.dumps(OBJECTS[0], indent=2).encode(),
    "deep.jsonl": json.dumps({**OBJECTS[0], "x": 0})
    .encode()
    .replace(b": 0}", b": " + b"[" * 2000 + b"]" * 2000 + b"}"),
    "joined.csv": f"{CSV}\ufeff{CSV}".encode(),
    "lists.jsonl": b'["a film", "up"]\n["b film", "down"]\n',
}


@pytest.mark.parametrize("name", FILES)
def test_unreadable_data_is_refused_at_plan(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(FILES[name])
    suite = {"task": "sequence-classification", "model": "nobody/bert", "dataset": name}
    with pytest.raises(SuiteInvalid) as caught:
        Suite.from_text(
            json.dumps({**suite, "matrix": {"batch_size_per_device": [1, 2]}}),
            folder=tmp_path,
            local=True,
        )
    for problem in caught.value.problems:
        assert problem.path.startswith("workload.")
        assert "\n" not in problem.message
        assert any(
            word in problem.message
            for word in ("expected", "is read with", "name it", "name them", "unpack it")
        ), problem
        assert len(problem.message) < 900
    assert SAID.get(name, "") in caught.value.problems[0].message


@pytest.mark.parametrize("kind", ["one line", "lines"])
@pytest.mark.parametrize(("suffix", "pack"), [("gz", gzip.compress), ("bz2", bz2.compress)])
def test_packed_data_of_a_very_large_size_is_refused_early(
    kind: str,
    suffix: str,
    pack: Callable[[bytes], bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """8 MiB of zeros are at most 8 KiB; here, more than 1 MiB and 100 times that is too much."""
    monkeypatch.setattr(file_text, "ALWAYS_UNPACKED_BYTES", 2**20)
    row = json.dumps({"text": "0" * 2**16}).encode() + b"\n"
    content = b'{"text": "' + b"0" * 2**23 if kind == "one line" else row * 2**7
    path = tmp_path / f"bomb.jsonl.{suffix}"
    path.write_bytes(pack(content))
    with pytest.raises(WorkloadError, match=r"expected at most 1 MiB, or 100 times the packed"):
        list(text_lines(local_file(path, path.name)))
    path.write_bytes(pack(row))
    assert list(text_lines(local_file(path, path.name))) == [row.decode()]


def test_a_line_too_long_for_memory_is_refused_with_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_text, "LONGEST_LINE_CHARACTERS", 9)
    path = tmp_path / "a.jsonl"
    path.write_text("12345678\n1234567890\n")
    lines = text_lines(local_file(path, path.name))
    assert next(lines) == "12345678\n"
    with pytest.raises(WorkloadError, match="line 2: it is longer than 9 characters"):
        next(lines)


def told_of(labels: list[str], folder: Path, **suite: Any) -> Sequence[str]:
    rows = (f"words of row {number},{label}" for number, label in enumerate(labels * 3))
    (folder / "a.csv").write_text("\n".join(["text,label", *rows, ""]))
    given = {"task": "sequence-classification", "model": "nobody/bert", "dataset": "a.csv", **suite}
    # Padding to the longest: nothing is said of the lengths of texts.
    matrix = {"batch_size_per_device": [1, 2], "padding": ["longest"]}
    text = json.dumps({**given, "matrix": matrix})
    return Suite.from_text(text, folder=folder, local=True).cautions


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (["up", "down"], None),
        (["1", " 1", "0", "2.0"], None),
        (
            ["up", "down", "nan"],
            "the label 'nan' is a class; pandas writes this word for a missing value",
        ),
        (["up", "up"], "all rows have the label 'up': there is nothing to learn"),
        (
            ["Up", "down", "up"],
            "the labels 'Up' and 'up' are two classes; capitals or blanks differ alone",
        ),
        (
            ["up", "down", "up "],
            "the labels 'up' and 'up ' are two classes; capitals or blanks differ alone",
        ),
        (
            ["up", "label", "down"],
            "row 2: the label 'label' is its column's name: a header too few or too many?",
        ),
        (
            [str(number / 4) for number in range(16)],
            "the 16 labels are decimal numbers, and each is a class",
        ),
    ],
)
def test_labels_likely_to_be_a_mistake_have_a_caution(
    labels: list[str], said: str | None, tmp_path: Path
) -> None:
    cautions = told_of(labels, tmp_path, label_count=16)
    assert [said in caution for caution in cautions] == [True] if said else not cautions


FIELDS = (
    *(
        f"limits.{name}"
        for name in ("max_usd", "max_hours", "max_minutes", "max_job_seconds", "max_attempts")
    ),
    "measurement.trials",
    "confirm.minutes",
    "confirm",
    "tolerance",
    "goal",
    "training.seed",
    "workload.examples",
)


@pytest.mark.parametrize("field", FIELDS)
def test_a_value_of_another_kind_is_named_once_without_its_consequences(
    field: str, tmp_path: Path
) -> None:
    (tmp_path / "data.csv").write_text(CSV)
    for value in VALUES:
        suite: dict[str, Any] = {
            "task": "sequence-classification",
            "model": "nobody/bert",
            "dataset": "data.csv",
        }
        section, _, name = field.rpartition(".")
        given = yaml.safe_load(f"x: {value}")["x"]
        text = yaml.safe_dump({**suite, "matrix": {"batch_size_per_device": [1, 2]}})
        text += f"{section}: {{{name}: {value}}}\n" if section else f"{name}: {value}\n"
        try:
            Suite.from_text(text, folder=tmp_path, local=True)
        except SuiteInvalid as error:
            paths = {
                problem.path.replace("measurement.confirm", "confirm").replace(
                    "max_hours", "max_minutes"
                )
                for problem in error.problems
            }
            assert paths == {field.replace("max_hours", "max_minutes")} or value == "{}", (
                value,
                error.problems,
            )
        else:
            assert given is None or is_number(given) or isinstance(given, str), value


def classifier(folder: Path, **special: str) -> Path:
    config = BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=5
    )
    BertForSequenceClassification(config).save_pretrained(folder)
    word_tokenizer(["[UNK]", "[PAD]", "good", "bad", "film"], **special).save_pretrained(folder)
    return folder


@pytest.mark.parametrize("case", ["none", "no pad", "pointer", "cut"])
def test_a_folder_of_an_untrainable_model_is_refused_at_plan(case: str, tmp_path: Path) -> None:
    folder = classifier(tmp_path / "model", **({} if case == "no pad" else {"pad_token": "[PAD]"}))
    weights = folder / "model.safetensors"
    weights.write_bytes(
        {"pointer": POINTER, "cut": weights.read_bytes()[:-99]}.get(case, weights.read_bytes())
    )
    (tmp_path / "data.csv").write_text(CSV)
    path = tmp_path / "suite.yaml"
    matrix = {"batch_size_per_device": [1, 2]}
    suite = {
        "task": "sequence-classification",
        "model": "model",
        "dataset": "data.csv",
        "matrix": matrix,
    }
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


def test_a_link_beside_its_file_would_count_rows_twice(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.csv").write_text(CSV)
    (tmp_path / "data" / "train-copy.csv").symlink_to("train.csv")
    suite = {"task": "sequence-classification", "model": "nobody/bert", "dataset": "data"}
    text = json.dumps({**suite, "matrix": {"batch_size_per_device": [1, 2]}})
    with pytest.raises(SuiteInvalid, match="are one file with two names, a link"):
        Suite.from_text(text, folder=tmp_path, local=True)
