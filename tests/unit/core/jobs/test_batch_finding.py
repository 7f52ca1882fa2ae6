"""What the parent wrote of a search for a batch is read as it is, and nothing of a damaged one."""

from dataclasses import asdict
from typing import Any

import pytest

from traindyno.core.jobs.run_end import BatchFinding, read_batch_finding
from traindyno.core.search.largest_batch import Probe

PROBES = [
    Probe(batch=4, fits=True, peak_bytes=100, samples_per_second=2.5),
    Probe(batch=8, fits=False),
]
WRITTEN = {"batch": 4, "probes": [asdict(probe) for probe in PROBES]}


def test_the_written_search_is_read() -> None:
    assert read_batch_finding(WRITTEN) == BatchFinding(batch=4, probes=tuple(PROBES))


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        [],
        {},
        {**WRITTEN, "batch": 0},
        {**WRITTEN, "batch": "4"},
        {**WRITTEN, "probes": 7},
        {**WRITTEN, "probes": [{"batch": 4}]},
        {**WRITTEN, "probes": [{"batch": 4, "fits": "yes"}]},
        {**WRITTEN, "probes": [None]},
    ],
)
def test_a_damaged_finding_is_none(damaged: Any) -> None:
    assert read_batch_finding(damaged) is None
