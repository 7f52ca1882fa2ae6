"""Data files as people have them, and what reading them has to give: the texts, the labels, or the
message.
"""

import bz2
import gzip
import io
import json
import lzma
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

LONG = "word " * 300_000  # 1.5 MB


@dataclass(frozen=True, slots=True, kw_only=True)
class DataCase:
    """The files of a dataset, by name, and its rows.

    Texts and labels of None are not checked; ``message`` is a part of the error.
    """

    files: dict[str, bytes]
    texts: Sequence[str] | None = None
    labels: Sequence[object] | None = None
    message: str | None = None
    with_labels: bool = False
    dataset: dict[str, Any] | None = None


def _csv(*lines: str, encoding: str = "utf-8") -> bytes:
    return "\n".join(lines).encode(encoding) + (b"" if encoding.startswith("utf-16") else b"\n")


def _jsonl(*rows: object) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def _parquet(**columns: Any) -> bytes:
    return _parquet_of(pa.table(columns))


def _parquet_of(table: pa.Table) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def _arrow(write: Callable[..., Any] = pa.ipc.new_stream, **columns: Any) -> bytes:
    """In batches of one row."""
    buffer = io.BytesIO()
    table = pa.table(columns)
    with write(buffer, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return buffer.getvalue()


def _parquet_of_latin_1() -> bytes:
    """A column that says that it is text, with bytes that are none in row 2."""
    offsets = pa.py_buffer(np.array([0, 3, 7], dtype=np.int32).tobytes())
    texts = pa.StringArray.from_buffers(2, offsets, pa.py_buffer("onecafé".encode("latin-1")))
    return _parquet(text=texts)


TEXT_FILES = {
    "plain text": DataCase(files={"corpus.txt": b"one\ntwo\n"}, texts=["one\ntwo\n"]),
    "a corpus of Markdown that nobody says is one": DataCase(
        files={"a.md": b"# One"},
        message="has no data files; it has a.md; dataset.format: text reads these as texts",
    ),
    "a corpus of Markdown": DataCase(
        files={"a.md": b"# One"}, dataset={"format": "text"}, texts=["# One"]
    ),
    "text without a suffix": DataCase(files={"corpus": b"one"}, texts=["one"]),
    "text packed with gzip": DataCase(
        files={"corpus.txt.gz": gzip.compress(b"one")}, texts=["one"]
    ),
    "text packed with bzip2": DataCase(
        files={"corpus.txt.bz2": bz2.compress(b"one")}, texts=["one"]
    ),
    "text packed with xz": DataCase(files={"corpus.txt.xz": lzma.compress(b"one")}, texts=["one"]),
    "a damaged gzip file": DataCase(
        files={"corpus.txt.gz": b"not gzip"}, message="corpus.txt.gz can't be unpacked"
    ),
    "text in UTF-8 with a byte order mark": DataCase(
        files={"a.txt": b"\xef\xbb\xbfone"}, texts=["one"]
    ),
    "text in UTF-16": DataCase(files={"a.txt": "größe".encode("utf-16")}, texts=["größe"]),
    "text in latin-1": DataCase(
        files={"a.txt": "one\ncafé\n".encode("latin-1")},
        message=r"a.txt, line 2: b'one\n"
        r"caf\xe9\n"
        r"' is not UTF-8; expected UTF-8, or UTF-16 with a byte order mark",
    ),
    "a picture": DataCase(
        files={"a.bin": b"\x89PNG\r\n\x00\x00\x00"},
        message="a.bin holds NUL bytes in line 1, so it is not text",
    ),
    "text in UTF-32": DataCase(
        files={"a.txt": "one".encode("utf-32")},
        message="a.txt is UTF-32; expected UTF-8, or UTF-16 with a byte order mark (convert other "
        "encodings first, for example: iconv -f utf-32 -t utf-8 a.txt)",
    ),
    "text in UTF-32 of the other byte order": DataCase(
        files={"a.txt": b"\0\0\xfe\xff" + "one".encode("utf-32-be")}, message="a.txt is UTF-32"
    ),
    "text in UTF-32 without a byte order mark": DataCase(
        files={"a.txt": "one".encode("utf-32-le")},
        message="a.txt holds NUL bytes in line 1, so it is not text",
    ),
    "NUL behind the first megabytes": DataCase(
        files={"a.txt": b"word\n" * 500_000 + b"o\0e"},
        message="a.txt holds NUL bytes in line 500001",
    ),
    "text for classification": DataCase(
        files={"a.txt": b"one"},
        with_labels=True,
        message="a.txt is text without labels; expected one of csv, json, parquet, arrow",
    ),
}
CSV_FILES = {
    "numbers as text": DataCase(
        files={"a.csv": _csv("text", "007", "1e5", "1.0")}, texts=["007", "1e5", "1.0"]
    ),
    "NA as text": DataCase(
        files={"a.csv": _csv("text,x", "NA,1", "null,2", ",3")}, texts=["NA", "null", ""]
    ),
    "quotes, commas and line breaks": DataCase(
        files={"a.csv": _csv("text,x", '"one, ""two""\nthree",1')}, texts=['one, "two"\nthree']
    ),
    "tab separated": DataCase(files={"a.tsv": _csv("x\ttext", "1\tone, two")}, texts=["one, two"]),
    "csv packed with gzip": DataCase(
        files={"a.csv.gz": gzip.compress(_csv("text", "one"))}, texts=["one"]
    ),
    "csv in UTF-16, as spreadsheets save it": DataCase(
        files={"a.csv": _csv("text,x", "größe,1", encoding="utf-16")}, texts=["größe"]
    ),
    "csv with a byte order mark": DataCase(
        files={"a.csv": b"\xef\xbb\xbf" + _csv("text", "one")}, texts=["one"]
    ),
    "csv in latin-1": DataCase(
        files={"a.csv": _csv("text", "café", encoding="latin-1")},
        message="a.csv, line 2: b'text\\ncaf\\xe9\\n' is not UTF-8",
    ),
    "a row longer than a megabyte": DataCase(
        files={"a.csv": _csv("text", LONG, "short")}, texts=[LONG, "short"]
    ),
    "a row with too many columns": DataCase(
        files={"a.csv": _csv("text,x", "one,1", "two,2,3")},
        message="a.csv, line 3: the row has 3 fields; expected 2",
    ),
    "labels as text": DataCase(
        files={"a.csv": _csv("text,label", "one,good", "two,bad")},
        with_labels=True,
        labels=["good", "bad"],
    ),
    "a missing label": DataCase(
        files={"a.csv": _csv("text,label", "one,1", "two,")},
        with_labels=True,
        message="a.csv, row 2: the label is missing; expected a label in every row",
    ),
    "a label of blanks": DataCase(
        files={"a.csv": _csv("text,label", "one,1", "two, ")},
        with_labels=True,
        message="row 2: the label is missing",
    ),
    "two text columns in csv": DataCase(
        files={"a.csv": _csv("text,x,text", "one,1,two")},
        message="a.csv has 2 columns 'text'; its columns are text, x, text; expected one",
    ),
    "two label columns": DataCase(
        files={"a.tsv": _csv('"label"\ttext\tlabel', "1\tone\t2")},
        with_labels=True,
        message="a.tsv has 2 columns 'label'; its columns are label, text, label; expected one",
    ),
    "two columns that nobody reads": DataCase(
        files={"a.csv": _csv("x,text,x", "1,one,2")}, texts=["one"]
    ),
    "an empty line above the header": DataCase(
        files={"a.csv": _csv("", "text,x", "one,1")}, texts=["one"]
    ),
    "NUL in csv": DataCase(
        files={"a.csv": _csv("text", *["word"] * 300_000, "o\0e")},
        message="a.csv holds NUL bytes in line 300002",
    ),
    "semicolons between columns": DataCase(
        files={"a.csv": _csv("text;label", "one, two;0", '"a;b";1')}, texts=["one, two", "a;b"]
    ),
    "tabs between columns": DataCase(files={"a.csv": _csv("text\tlabel", "one\t0")}, texts=["one"]),
    "one column with semicolons in its texts": DataCase(
        files={"a.csv": _csv("text", "one; two", "three")}, texts=["one; two", "three"]
    ),
    "semicolons in a column's name": DataCase(
        files={"a.csv": _csv("text;x,label", "one,0")},
        message="its columns are text;x, label",
    ),
    "a space before a column's name": DataCase(
        files={"a.csv": _csv("text, label", "one, 0")},
        message="its columns are text, ' label'",
        with_labels=True,
    ),
    "columns of other names": DataCase(
        files={"a.csv": _csv("review,stars", "one,1")},
        message="; dataset.text_column and dataset.label_column name them",
        with_labels=True,
    ),
    "an empty CSV": DataCase(files={"a.csv": b""}, message="a.csv has no rows"),
    "a header only": DataCase(files={"a.csv": _csv("text,label")}, message="a.csv has no rows"),
    "a Parquet without rows": DataCase(
        files={"a.parquet": _parquet(text=pa.array([], pa.string()))}, message="no rows"
    ),
    "a quote that never ends": DataCase(
        files={"a.csv": b'text\n"one\n' + b"word word\n" * 1_800_000},
        message="a value is longer than 8,388,608 characters, or a quote is not closed",
    ),
    "a pretty-printed object": DataCase(
        files={"a.json": json.dumps({"text": "one"}, indent=1).encode()},
        message="a.json, line 1 is not JSON: one object in several lines; expected one object a "
        "line, or one list",
    ),
    "gzip under another name": DataCase(
        files={"a.jsonl": gzip.compress(b'{"text": "one"}')},
        message="a.jsonl is packed by gzip: name it a.jsonl.gz",
    ),
    "Parquet under another name": DataCase(
        files={"a.csv": _parquet(text=["one"])},
        message="a.csv is a Parquet file: name it a.parquet",
    ),
    "another text column": DataCase(
        files={"a.csv": _csv("review,stars", "one,1")},
        message="a.csv has no column 'text'; its columns are review, stars",
    ),
}
JSON_FILES = {
    "json lines": DataCase(
        files={"a.jsonl": _jsonl({"text": "one"}, {"text": "two", "x": 1})}, texts=["one", "two"]
    ),
    "a list of objects": DataCase(
        files={"a.json": json.dumps([{"text": "one"}, {"text": "two"}], indent=2).encode()},
        texts=["one", "two"],
    ),
    "a first row over a megabyte": DataCase(
        files={"a.jsonl": _jsonl({"text": LONG}, {"text": "b"})}, texts=[LONG, "b"]
    ),
    "a line separator of Unicode within a text": DataCase(
        files={"a.jsonl": _jsonl({"text": "a\u2028b"})}, texts=["a\u2028b"]
    ),
    "json lines packed with gzip": DataCase(
        files={"a.jsonl.gz": gzip.compress(_jsonl({"text": "one"}))}, texts=["one"]
    ),
    "an object as text": DataCase(
        files={"a.jsonl": _jsonl({"text": "one"}, {"text": {"en": "two"}})},
        message="a.jsonl, row 2: the text is dict \"{'en': 'two'}\"; expected text",
    ),
    "a list as text": DataCase(
        files={"a.jsonl": _jsonl({"text": ["one"]})},
        message="a.jsonl, row 1: the text is list \"['one']\"; expected text; join a list to one "
        "text first",
    ),
    "a chat as text": DataCase(
        files={"a.jsonl": _jsonl({"text": [{"role": "user", "content": "one"}]})},
        message="expected text, not the turns of a chat; workload.task causal-lm with "
        "workload.dataset.format: chat trains on conversations",
    ),
    "a chat as JSON in a text": DataCase(
        files={"a.jsonl": _jsonl({"text": '[{"role": "user", "content": "one"}]'})},
        message='a.jsonl, row 1: the text is str \'[{"role": "user", "content": "one"}]\', the '
        "turns of a chat as JSON; workload.task causal-lm with",
    ),
    "a number as text": DataCase(
        files={"a.jsonl": _jsonl({"text": 7})},
        message="a.jsonl, row 1: the text is int '7'; expected text",
    ),
    "a missing text": DataCase(
        files={"a.jsonl": _jsonl({"text": None})},
        message="a.jsonl, row 1: the text is missing; expected text",
    ),
    "a row without the column": DataCase(
        files={"a.jsonl": _jsonl({"text": "one"}, {"body": "two"})},
        message="a.jsonl, row 2 has no column 'text'; its columns are body",
    ),
    "a half of a surrogate pair": DataCase(
        files={"a.jsonl": b'{"text": "one"}\n{"text": "ab\\ud83d"}\n'},
        message=r"a.jsonl, row 2: the text has '\ud83d' at character 3, a half of a surrogate pair",
    ),
    "two texts in an object": DataCase(
        files={"a.jsonl": b'{"text": "one"}\n{"text": "two", "text": "three"}\n'},
        message="a.jsonl, line 2: an object has 2 values of 'text'; expected one",
    ),
    "two texts in an object of a list": DataCase(
        files={"a.json": b'[{"text": "one"},\n {"text": "two", "text": "three"}]'},
        message="a.json, line 1: an object has 2 values of 'text'; expected one",
    ),
    "an inner text": DataCase(
        files={"a.jsonl": _jsonl({"text": "one", "source": {"text": "two"}})}, texts=["one"]
    ),
    "a whole surrogate pair": DataCase(
        files={"a.jsonl": b'{"text": "\\ud83d\\ude00"}\n'}, texts=["\U0001f600"]
    ),
    "NaN as label": DataCase(
        files={
            "a.jsonl": _jsonl({"text": "one", "label": 1}, {"text": "two", "label": float("nan")})
        },
        with_labels=True,
        message="a.jsonl, row 2: the label is float 'nan'; expected one class, as a whole number "
        "or a text",
    ),
    "lists as labels": DataCase(
        files={"a.jsonl": _jsonl({"text": "one", "label": 1}, {"text": "two", "label": [0, 1]})},
        with_labels=True,
        message="a.jsonl, row 2: the label is list '[0, 1]'; expected one class",
    ),
    "a broken line": DataCase(
        files={"a.jsonl": b'{"text": "one"}\n{"text": \n'}, message="a.jsonl, line 2 is not JSON"
    ),
    "a missing label in json": DataCase(
        files={"a.jsonl": _jsonl({"text": "one", "label": 0}, {"text": "two", "label": None})},
        with_labels=True,
        message="a.jsonl, row 2: the label is missing",
    ),
}
PARQUET_FILES = {
    "parquet": DataCase(files={"a.parquet": _parquet(text=["one", "two"])}, texts=["one", "two"]),
    "parquet with large strings": DataCase(
        files={"a.parquet": _parquet(text=pa.array(["one"], pa.large_string()))}, texts=["one"]
    ),
    "a binary column": DataCase(
        files={"a.parquet": _parquet(text=[b"caf\xe9"])},
        message="a.parquet, row 1: the text is bytes \"b'caf\\\\xe9'\"; expected text",
    ),
    "a label of parquet": DataCase(
        files={"a.parquet": _parquet(text=["one", "two"], label=[1.0, 0.0])},
        with_labels=True,
        labels=[1.0, 0.0],
    ),
    "a missing text in row 2,001": DataCase(
        files={"a.parquet": _parquet(text=["one"] * 2000 + [None])},
        message="a.parquet, row 2001: the text is missing; expected text",
    ),
    "NaN among the labels of parquet": DataCase(
        files={"a.parquet": _parquet(text=["one"] * 3, label=[1.0, 0.0, float("nan")])},
        with_labels=True,
        message="a.parquet, row 3: the label is float 'nan'",
    ),
    "labels for several classes at once": DataCase(
        files={"a.parquet": _parquet(text=["one", "two"], label=[[1, 0], [0, 1]])},
        with_labels=True,
        message="a.parquet, row 1: the label is list '[1, 0]'",
    ),
    "two text columns in parquet": DataCase(
        files={"a.parquet": _parquet_of(pa.table([["one"], ["two"]], names=["text", "text"]))},
        message="a.parquet has 2 columns 'text'; its columns are text, text; expected one",
    ),
    "a text column with bytes that are no text": DataCase(
        files={"a.parquet": _parquet_of_latin_1()},
        message=r"a.parquet, row 2: the column 'text' has b'caf\xe9', which is not UTF-8; "
        r"expected text",
    ),
    "no parquet at all": DataCase(
        files={"a.parquet": b"text\none\n"}, message="a.parquet can't be read as parquet"
    ),
}
ARROW_FILES = {
    "arrow as save_to_disk writes it": DataCase(
        files={
            "data-00000-of-00001.arrow": _arrow(text=["one", "two"], label=[0, 1]),
            "state.json": b"{}",
            "dataset_info.json": b"{}",
        },
        with_labels=True,
        texts=["one", "two"],
        labels=[0, 1],
    ),
    "an arrow file": DataCase(
        files={"a.arrow": _arrow(pa.ipc.new_file, text=["one", "two"])}, texts=["one", "two"]
    ),
    "another text column in arrow": DataCase(
        files={"a.arrow": _arrow(review=["one"])},
        message="a.arrow has no column 'text'; its columns are review",
    ),
    "a missing text in arrow": DataCase(
        files={"a.arrow": _arrow(text=["one", None])},
        message="a.arrow, row 2: the text is missing; expected text",
    ),
    "a half of an arrow file": DataCase(
        files={"a.arrow": _arrow(text=["one"] * 1000)[:2000]},
        message="a.arrow can't be read as arrow: ",
    ),
    "no arrow at all": DataCase(
        files={"a.arrow": b"text\none\n"}, message="a.arrow can't be read as arrow: "
    ),
}
FOLDERS = {
    "csv and json, of which one is asked for": DataCase(
        files={"a.csv": _csv("text", "one"), "b.jsonl": _jsonl({"text": "two"})},
        dataset={"format": "json"},
        texts=["two"],
    ),
    "a git repository": DataCase(
        files={
            "a.txt": b"one",
            ".git/hooks/pre-commit": b"#!/bin/sh",
            "sub/.cache/b.metadata": b"x",
        },
        texts=["one"],
    ),
    "a shard that nobody can read": DataCase(
        files={"train-0.jsonl": _jsonl({"text": "one"}), "train-1.jsonl.zst": b"(\xb5/\xfd"},
        message="can't be read (train-1.jsonl.zst), so only train-0.jsonl would be read; unpack or "
        "convert them",
    ),
}
CASES = {**TEXT_FILES, **CSV_FILES, **JSON_FILES, **PARQUET_FILES, **ARROW_FILES, **FOLDERS}
