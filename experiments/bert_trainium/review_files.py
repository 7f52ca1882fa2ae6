"""Makes the post's train.csv and test.csv of Amazon Polarity, from the Hub or from a local copy of
it.

Usage: python review_files.py FOLDER [--polarity PLACE]. Each file has the columns content and
label. Upload them: aws s3 sync FOLDER s3://your-bucket/classification/data/amazon/

PLACE is a Hub id, or a folder with Parquet or CSV files whose names begin with train and test.
"""

import argparse
from pathlib import Path
from typing import List, Optional

from datasets import load_dataset

HUB_ID = "fancyzhx/amazon_polarity"
COLUMNS = ("content", "label")


def write_files(place: str, folder: Path) -> None:
    """Raises ValueError where ``place`` lacks a split or a column."""
    folder.mkdir(parents=True, exist_ok=True)
    for split in ("train", "test"):
        if Path(place).is_dir():
            files = sorted(
                str(path)
                for kind in ("parquet", "csv")
                for path in Path(place).glob(split + "*." + kind)
            )
            if not files:
                raise ValueError(
                    "{}: expected {}*.parquet or {}*.csv, found neither".format(place, split, split)
                )
            rows = load_dataset(files[0].rpartition(".")[2], data_files=files, split="train")
        else:
            rows = load_dataset(place, split=split)
        if not set(COLUMNS) <= set(rows.column_names):
            raise ValueError(
                "{}, split {}: expected the columns {}, found {}".format(
                    place, split, " and ".join(COLUMNS), ", ".join(rows.column_names)
                )
            )
        kept = rows.remove_columns(
            [column for column in rows.column_names if column not in COLUMNS]
        )
        kept.to_csv(str(folder / (split + ".csv")), index=False)
        print("{}: {:,} reviews".format(folder / (split + ".csv"), len(kept)))  # noqa: T201


def main(arguments: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(description="Make the post's files from Amazon Polarity.")
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--polarity", default=HUB_ID, help="a Hub id, or a folder with a local copy"
    )
    asked = parser.parse_args(arguments)
    write_files(asked.polarity, asked.folder)


if __name__ == "__main__":
    main()
