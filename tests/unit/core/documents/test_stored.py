"""Parts of a record: of a kind that this program does not know, and of earlier documents."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from traindyno.core.documents.stored import (
    AnyPart,
    StoredPart,
    UnknownPart,
    find_part,
    from_document,
    to_document,
)
from traindyno.core.verdict.cell_row import CellQuality
from traindyno.core.verdict.found_batch import CellBatch
from traindyno.core.verdict.slow_steps import CellSteps
from traindyno.core.verdict.trained_weights import CellWeights

OF_A_LATER_LAB = {"kind": "heat", "degrees": 71.5, "rooms": [{"name": "hall"}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    parts: tuple[AnyPart, ...]


def read(*documents: dict[str, Any]) -> Record:
    return from_document({"parts": documents}, Record)


def test_an_unknown_part_is_ignored_and_written_as_it_was() -> None:
    batch = {"kind": "batch", "found": 8, "peak_memory_bytes": None}
    record = read(OF_A_LATER_LAB, batch)
    assert find_part(record.parts, CellBatch) == CellBatch(found=8)
    assert find_part(record.parts, CellSteps) is None
    written = to_document(record)["parts"]
    assert written[0] == OF_A_LATER_LAB
    assert written[1].items() >= batch.items()


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("CellBatch", CellBatch(found=8)),
        ("CellQuality", CellQuality(reached=2)),
        ("CellSteps", CellSteps()),
        ("CellWeights", CellWeights(parameters=7)),
    ],
)
def test_a_part_of_an_earlier_document_names_its_class(name: str, part: StoredPart) -> None:
    (document,) = to_document(Record(parts=(part,)))["parts"]
    earlier = {"part": name, **{key: document[key] for key in document if key != "kind"}}
    assert read(earlier).parts == (part,)


def test_a_class_of_an_earlier_document_may_be_gone() -> None:
    assert read({"part": "CellHeat", "degrees": 70}).parts == (
        UnknownPart({"kind": "CellHeat", "degrees": 70}),
    )


def test_a_part_read_before_the_import_of_its_feature_is_found() -> None:
    record = read(OF_A_LATER_LAB)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Heat(StoredPart):
        kind: ClassVar[str] = "heat"
        degrees: float

    try:
        assert find_part(record.parts, Heat) == Heat(degrees=71.5)
    finally:
        del StoredPart.KINDS["heat"]
