"""Text as blocks of tokens of equal length: from a dataset on the Hub, or from CSV, JSON or TXT
files.
"""

import itertools
from pathlib import Path
from typing import Any, Dict, List, Optional

from datasets import Dataset, load_dataset

FORMATS = {".csv": "csv", ".json": "json", ".jsonl": "json", ".txt": "text"}
USUAL_COLUMNS = ("text", "sentence")


def load_text(name: Optional[str], configuration: Optional[str], files: Optional[str]) -> Dataset:
    """The training split of dataset ``name``, or else the file ``files``, or all files of the
    folder ``files``.

    Raises ValueError where there is neither, and where the files are of none of the formats.
    """
    if name:
        return load_dataset(name, configuration, split="train")
    paths = [path for path in _files_at(files) if path.suffix in FORMATS]
    formats = {FORMATS[path.suffix] for path in paths}
    if len(formats) != 1:
        raise ValueError(
            (
                "no text was found at {!r} in one format, but {}; expected dataset_name, or files "
                "of one of {}"
            ).format(files, sorted(formats) or "nothing", ", ".join(FORMATS))
        )
    return load_dataset(formats.pop(), data_files=[str(path) for path in paths], split="train")


def in_blocks(text: Dataset, tokenizer: Any, length: int, column: Optional[str] = None) -> Dataset:
    """Tokens of all rows, one after the other, cut into blocks; what does not fill a block is left
    out.
    """
    column = column or next(
        (name for name in USUAL_COLUMNS if name in text.column_names), text.column_names[0]
    )

    def tokenized(rows: Dict[str, List[Any]]) -> Dict[str, List[Any]]:
        tokens = list(itertools.chain.from_iterable(tokenizer(rows[column])["input_ids"]))
        blocks = [
            tokens[start : start + length] for start in range(0, len(tokens) - length + 1, length)
        ]
        return {"input_ids": blocks, "labels": [list(block) for block in blocks]}

    return text.map(tokenized, batched=True, remove_columns=text.column_names)


def _files_at(files: Optional[str]) -> List[Path]:
    if not files:
        return []
    path = Path(files)
    return (
        sorted(inner for inner in path.rglob("*") if inner.is_file()) if path.is_dir() else [path]
    )
