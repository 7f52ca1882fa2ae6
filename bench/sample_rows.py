"""Rows of real text of unequal length: the paragraphs of the sample that the quickstart suite
trains on.
"""

import json
from pathlib import Path

from traindyno.api.sample_data import TEXT_SAMPLE, write_sample

LEAST_CHARACTERS = 40


def write_rows(folder: Path) -> Path:
    """A folder with one file of JSON lines; a row's label says whether it defines or calls
    something.
    """
    sample = write_sample(TEXT_SAMPLE, folder / "text")
    paragraphs = (sample / "text.txt").read_text(encoding="utf-8", errors="replace").split("\n\n")
    rows = [
        {"text": paragraph, "label": int("(" in paragraph)}
        for paragraph in paragraphs
        if len(paragraph) >= LEAST_CHARACTERS
    ]
    made = folder / "rows"
    made.mkdir()
    (made / "train.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    return made
