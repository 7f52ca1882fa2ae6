"""Writes English Wikipedia as the lines of text that the script reads, from the Hub or from a local
copy.

Usage: python wikipedia_files.py FOLDER [--megabytes 1600] [--wikipedia PLACE]. 640,000 passages of
512 tokens are about 1,400 MB. Upload the files: aws s3 sync FOLDER s3://your-bucket/albert/train/

PLACE is a Hub id, or a folder with Parquet files. The post's books are not on the Hub: add text
files of your own.
"""

import argparse
from pathlib import Path
from typing import Any, Iterable, List, Optional

from datasets import load_dataset

HUB_ID = "wikimedia/wikipedia"
CONFIGURATION = "20231101.en"
FILE_BYTES = 64_000_000  # a reader reads whole files: many of them for many processes


def write_files(
    articles: Iterable[Any], folder: Path, most_bytes: int, file_bytes: int = FILE_BYTES
) -> int:
    """A paragraph is a line. The number of bytes written: no more of ``articles`` are read."""
    folder.mkdir(parents=True, exist_ok=True)
    written = 0
    number = 0
    file = None
    for article in articles:
        if written >= most_bytes:
            break
        if file is None or written >= number * file_bytes:
            if file is not None:
                file.close()
            file = (folder / "wikipedia-{:05d}.txt".format(number)).open("wb")
            number += 1
        lines = [line.strip() for line in article["text"].splitlines() if line.strip()]
        written += file.write("".join(line + "\n" for line in lines).encode())
    if file is not None:
        file.close()
    return written


def main(arguments: Optional[List[str]] = None) -> None:
    parser = argparse.ArgumentParser(description="Write Wikipedia as lines of text.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--megabytes", type=int, default=1600)
    parser.add_argument(
        "--wikipedia", default=HUB_ID, help="a Hub id, or a folder with Parquet files"
    )
    asked = parser.parse_args(arguments)
    if Path(asked.wikipedia).is_dir():
        files = sorted(str(path) for path in Path(asked.wikipedia).glob("*.parquet"))
        articles = load_dataset("parquet", data_files=files, split="train", streaming=True)
    else:
        articles = load_dataset(asked.wikipedia, CONFIGURATION, split="train", streaming=True)
    print("{:,} bytes".format(write_files(articles, asked.folder, asked.megabytes * 10**6)))  # noqa: T201


if __name__ == "__main__":
    main()
