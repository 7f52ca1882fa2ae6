"""Makes the files that the notebook uploads, from GLUE's SST-2 on the Hub or from a local copy of
it.

Usage: python sst2_files.py FOLDER [--glue PLACE]. The folder gets train/training.json and
validation/validation.json: one sentence with its label on each line. Upload it: aws s3 sync FOLDER
s3://your-bucket/dataset/

PLACE is a Hub id, or a folder with one file per split in Parquet, CSV, TSV or JSON whose name
begins with the split's: train.tsv and dev.tsv of GLUE's own archive, or
train-00000-of-00001.parquet and validation-00000-of-00001.parquet.
"""

import argparse
from pathlib import Path
from typing import List, Optional

from datasets import Dataset, load_dataset

HUB_ID = "nyu-mll/glue"
CONFIGURATION = "sst2"
# The names of a split's files, and the file of the notebook. GLUE's archive calls the validation
# split dev.
SPLITS = {
    "train": (("train",), "training.json"),
    "validation": (("validation", "dev"), "validation.json"),
}
FORMATS = {".parquet": "parquet", ".csv": "csv", ".tsv": "csv", ".json": "json", ".jsonl": "json"}
COLUMNS = ("sentence", "label")


def write_files(place: str, folder: Path) -> None:
    """Raises ValueError where ``place`` lacks a split or a column."""
    for split, (names, file) in SPLITS.items():
        rows = load_split(place, split, names)
        missing = [column for column in COLUMNS if column not in rows.column_names]
        if missing:
            raise ValueError(
                "{}, split {}: expected the columns {}, found {}".format(
                    place, split, ", ".join(COLUMNS), ", ".join(rows.column_names)
                )
            )
        kept = rows.remove_columns(
            [column for column in rows.column_names if column not in COLUMNS]
        )
        (folder / split).mkdir(parents=True, exist_ok=True)
        kept.to_json(str(folder / split / file), force_ascii=False)
        print("{}: {:,} sentences".format(folder / split / file, len(kept)))  # noqa: T201


def load_split(place: str, split: str, names: "tuple[str, ...]") -> Dataset:
    if not Path(place).is_dir():
        return load_dataset(place, CONFIGURATION, split=split)
    files = [
        path
        for path in sorted(Path(place).iterdir())
        if path.name.startswith(names) and path.suffix in FORMATS
    ]
    if not files:
        present = ", ".join(sorted(path.name for path in Path(place).iterdir())) or "nothing"
        raise ValueError(
            (
                "{}: expected a file of the split {} whose name begins with {} and ends with {}, "
                "found {}"
            ).format(place, split, " or ".join(names), ", ".join(FORMATS), present)
        )
    # GLUE's archive has quotation marks in sentences, which begin no quoted field.
    options = {"sep": "\t", "quoting": 3} if files[0].suffix == ".tsv" else {}
    return load_dataset(
        FORMATS[files[0].suffix], data_files=[str(path) for path in files], split="train", **options
    )


def main(arguments: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(description="Make the GPT-J notebook's files from SST-2.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--glue", default=HUB_ID, help="a Hub id, or a folder with a local copy")
    asked = parser.parse_args(arguments)
    write_files(asked.glue, asked.folder)


if __name__ == "__main__":
    main()
