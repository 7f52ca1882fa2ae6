"""Amazon's reviews from a CSV file with the columns content and label, as this process's share, and
their batches.
"""

import csv
import itertools
from pathlib import Path
from typing import Any, Dict, List, Optional, Tuple

import torch
from torch.utils.data import DataLoader

Review = Tuple[str, int]
Batch = Dict[str, torch.Tensor]


def read_reviews(
    path: Path, rank: int, world_size: int, most: Optional[int] = None
) -> List[Review]:
    """Every ``world_size``-th of the first ``most`` rows, as many for each rank.

    Raises ValueError where a column is missing, and where there are fewer rows than processes.
    """
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        missing = {"content", "label"} - set(rows.fieldnames or ())
        if missing:
            raise ValueError(
                "{} has no column {}; found {}; expected content and label".format(
                    path,
                    " and no column ".join(sorted(missing)),
                    ", ".join(rows.fieldnames or ()) or "no header",
                )
            )
        reviews = [(row["content"], int(row["label"])) for row in itertools.islice(rows, most)]
    share = len(reviews) // world_size
    if not share:
        raise ValueError(
            "{} holds {} reviews; expected one or more for each of {} processes".format(
                path, len(reviews), world_size
            )
        )
    return reviews[rank::world_size][:share]


def review_loader(
    reviews: List[Review], tokenizer: Any, batch_size: int, length: int, *, shuffles: bool
) -> "DataLoader[Any]":
    """Reviews padded or cut to ``length`` tokens, so that all full batches have one shape."""

    def batch_of(chosen: List[Review]) -> Batch:
        texts = [content for content, _label in chosen]
        tokens = tokenizer(
            texts, max_length=length, padding="max_length", truncation=True, return_tensors="pt"
        )
        return dict(tokens, labels=torch.tensor([label for _content, label in chosen]))

    return DataLoader(reviews, batch_size=batch_size, shuffle=shuffles, collate_fn=batch_of)  # type: ignore[arg-type]
