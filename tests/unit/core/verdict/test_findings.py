"""Each figure of the findings on fixed executions is the recorded one, to nine digits."""

import os
from collections.abc import Iterator, Mapping, Sequence
from math import isclose, log
from typing import Any

import pytest

from tests.simulations import findings

WRITES = bool(os.environ.get("TRAINDYNO_WRITE_FINDINGS"))
NINE_DIGITS = 5e-10
# Differences of nearly equal numbers: a range, a spread of equal trials.
NOTHING = 1e-12
ONE_VARIANCE = ("samples_per_second", "seconds", "billable_seconds", "instance_hours", "usd")
MOST_APART = 1.2


def differences(recorded: Any, now: Any, path: str = "") -> Iterator[str]:
    if isinstance(recorded, Mapping) and isinstance(now, Mapping):
        for name in sorted({*recorded, *now}):
            yield from differences(recorded.get(name), now.get(name), f"{path}/{name}")
    elif isinstance(recorded, list) and isinstance(now, Sequence) and len(recorded) == len(now):
        for number, (one, other) in enumerate(zip(recorded, now, strict=True)):
            yield from differences(one, other, f"{path}/{number}")
    elif isinstance(recorded, float) and isinstance(now, float | int):
        if not isclose(recorded, now, rel_tol=NINE_DIGITS, abs_tol=NOTHING):
            yield f"{path}: {recorded} → {now}"
    elif recorded != now:
        yield f"{path}: {recorded} → {now}"


@pytest.mark.parametrize("name", findings.PLAYED)
def test_no_figure_changes(name: str) -> None:
    numbers = {play: findings.numbers_of(verdict()) for play, verdict in findings.PLAYED[name]()}
    if WRITES:
        findings.write(name, numbers)
    assert list(differences(findings.read(name), numbers)) == []


def widths(row: Mapping[str, Any]) -> list[float]:
    """The widths of the logarithms of the intervals of a cell's rate, times and bill."""
    intervals = [row[column].get("interval") for column in ONE_VARIANCE if row.get(column)]
    return [log(interval["high"] / interval["low"]) for interval in intervals if interval]


@pytest.mark.parametrize("name", ["recorded", "surfaces", "long_runs", "shared_jobs"])
def test_a_rate_its_time_and_its_bill_have_one_interval(name: str) -> None:
    """Of cells whose trials all completed. The start of a shared job is the same for each run, so
    that bills are narrower by its share.
    """
    rows = [row for play in findings.read(name).values() for row in play.get("rows", {}).values()]
    compared = [row_widths for row in rows if len(row_widths := widths(row)) > 1]
    assert len(compared) > 5
    assert all(max(row_widths) < MOST_APART * min(row_widths) for row_widths in compared)
