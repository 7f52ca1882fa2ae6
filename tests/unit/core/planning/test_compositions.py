"""The cautions about degrees."""

from typing import Any

import pytest

from traindyno.core.planning.cell_notes import composition_notes
from traindyno.core.run.settings import Settings
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite_file import parse_part


def cell(**settings: Any) -> Cell:
    values = {
        "instance": "ml.p4d.24xlarge",
        "strategy": "fsdp",
        "batch_size_per_device": 2,
        **settings,
    }
    return Cell(cell_id="0123abcd", label="x", settings=parse_part(values, Settings))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"strategy": "tensor", "tensor_degree": 8, "instance_count": 2}, []),
        ({"strategy": "tensor", "instance": "local.cpu", "instance_count": 4}, []),
        ({"strategy": "mesh", "pipeline_degree": 16, "instance_count": 2}, []),
        (
            {"strategy": "tensor", "tensor_degree": 16, "instance_count": 2},
            ["a tensor group of 16 processes spans instances of 8 devices"],
        ),
        (
            {"strategy": "mesh", "tensor_degree": 3, "instance_count": 3},
            [
                "a tensor group of 3 processes spans instances of 8 devices",
                "tensor_degree 3 is no power of two",
            ],
        ),
    ],
)
def test_uncommon_degrees_get_a_caution(settings: dict[str, Any], said: list[str]) -> None:
    notes = list(composition_notes([cell(**settings)]))
    assert len(notes) == len(said)
    for note, part in zip(notes, said, strict=True):
        assert note.startswith("cell x (0123abcd): ")
        assert part in note
