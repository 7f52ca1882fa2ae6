"""Passages of equal length out of lines of text, of which every process and loader worker reads a
part, and masks.
"""

import itertools
from typing import Any, Dict, Iterable, Iterator, List

from torch.utils.data import DataLoader, IterableDataset, get_worker_info
from transformers import DataCollatorForLanguageModeling


class Passages(IterableDataset[Dict[str, List[int]]]):
    """Tokens of this process's and worker's lines, cut to full length, without an end: the lines
    are read again.

    Raises ValueError if the text holds less than one passage for each reader.
    """

    def __init__(
        self, lines: Iterable[str], tokenizer: Any, length: int, rank: int, world_size: int
    ) -> None:
        self.lines = lines
        self.tokenizer = tokenizer
        self.length = length
        self.rank = rank
        self.world_size = world_size

    def __iter__(self) -> Iterator[Dict[str, List[int]]]:
        worker = get_worker_info()
        workers = worker.num_workers if worker else 1
        reader = self.rank * workers + (worker.id if worker else 0)
        while True:
            has_passage = False
            for passage in self._passages(reader, self.world_size * workers):
                has_passage = True
                yield passage
            if not has_passage:
                raise ValueError(
                    "reader {} of {} found no passage of {} tokens in {}; expected more text, or "
                    "fewer processes and loader workers".format(
                        reader, self.world_size * workers, self.length, self.lines
                    )
                )

    def _passages(self, reader: int, readers: int) -> Iterator[Dict[str, List[int]]]:
        room = self.length - 2  # beside the marks of begin and end
        begin = self.tokenizer.cls_token_id
        end = self.tokenizer.sep_token_id
        waiting = []  # type: List[int]
        for line in itertools.islice(self.lines, reader, None, readers):
            waiting += self.tokenizer(line, add_special_tokens=False)["input_ids"]
            while len(waiting) >= room:
                yield {"input_ids": [begin, *waiting[:room], end]}
                waiting = waiting[room:]


def masked_loader(
    passages: Passages, batch_size: int, workers: int, mask_probability: float
) -> "DataLoader[Any]":
    """Batches with masks drawn anew each time; ``workers`` processes read, tokenise and mask, 0 is
    this process.
    """
    collate = DataCollatorForLanguageModeling(passages.tokenizer, mlm_probability=mask_probability)
    return DataLoader(
        passages, batch_size=batch_size, num_workers=workers, collate_fn=collate, pin_memory=True
    )
