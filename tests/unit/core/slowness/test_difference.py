"""Why one cell takes less time than another, where the truth is known."""

import re
from random import Random

import pytest

from tests.unit.core.slowness.test_step_shares import probed
from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.slowness.slowness_text import describe_difference
from traindyno.core.slowness.step_shares import (
    COMMUNICATION,
    COMPUTE,
    DATA,
    OPTIMIZER,
    PARTS,
    START_UP,
    CellTime,
    Difference,
    Seconds,
    explain_difference,
)

EXAMPLES = 10_000
STEP_PARTS = (DATA, COMMUNICATION, OPTIMIZER, COMPUTE)
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}


def cell(
    seconds: list[float], samples: float, start_up: float | None, *, extra: float = 0.0, error: float = 0.0001
) -> CellTime:
    """With ``seconds`` of each part of a step of ``samples``; ``extra``: of the whole work, in no step."""
    times = [sum(seconds[first:]) for first in range(len(seconds))]
    parts = probed(times, [error] * 4)
    parts = StepParts(**{**{name: getattr(parts, name) for name in StepParts.__slots__}, "samples_per_step": samples})
    return CellTime(
        seconds=sum(seconds) * EXAMPLES / samples + (start_up or 0.0) + extra,
        start_up=None if start_up is None else Seconds(mean=start_up, half_width=1.0),
        parts=parts,
    )


def explained(first: CellTime, second: CellTime) -> Difference:
    found = explain_difference(first, second, EXAMPLES)
    assert found is not None
    return found


def said_seconds(text: str) -> float:
    """``2 min 44 s less`` is -164."""
    seconds = sum(float(number) * UNITS[unit] for number, unit in re.findall(r"([\d.]+) (ms|min|s|h)\b", text))
    return -seconds if "less" in text else seconds


@pytest.mark.parametrize("seed", range(10))
def test_the_difference_is_split_as_the_cells_differ(seed: int) -> None:
    random = Random(seed)
    first, second = ([random.uniform(0, 0.3) for _ in STEP_PARTS] for _ in range(2))
    samples = random.choice([8, 16, 64])
    found = explained(cell(first, samples, 20), cell(second, 2 * samples, 50, extra=7))
    for name, a, b in zip(STEP_PARTS, first, second, strict=True):
        assert found.by_part[name].mean == pytest.approx((a - b / 2) * EXAMPLES / samples)
    assert found.by_part[START_UP] == Seconds(mean=-30, half_width=2**0.5)
    assert found.seconds - sum(part.mean for part in found.by_part.values()) == pytest.approx(-7)


@pytest.mark.parametrize("error", [0.0001, 0.02, 0.2])
def test_what_the_sentence_names_adds_up_to_the_difference_and_is_more_than_noise(error: float) -> None:
    random = Random(f"{error}")
    for _ in range(50):
        cells = [
            cell([random.uniform(0.01, 0.3) for _ in STEP_PARTS], 8, random.uniform(0, 50), extra=20, error=error)
            for _ in range(2)
        ]
        found = explained(*cells)
        whole, *others = describe_difference("A", "B", found)
        total, _, told = whole.removeprefix("A needs ").removesuffix(".").partition(" than B")
        assert said_seconds(total) == pytest.approx(found.seconds, rel=0.01)
        assert (told == "; the probes don't show why") == (not found.found)
        terms = re.split(r", | and (?=\d)", told.removeprefix(": ")) if found.found else []
        values = [said_seconds(re.sub(r"\(.*\)", "", term)) for term in terms]
        close = 0.01 * sum(map(abs, values)) + 0.01 * abs(found.seconds)
        assert not terms or sum(values) == pytest.approx(found.seconds, abs=close)
        for term, value in zip(terms, values, strict=True):
            if "±" in term:
                assert abs(value) > 0.99 * said_seconds(term.partition("± ")[2].partition(")")[0])
        named = {name for name in PARTS if any(name in term for term in terms)}
        assert named == {name for name, part in found.by_part.items() if abs(part.mean) > part.half_width}
        assert {name for name in PARTS if name in "".join(others)} == {*PARTS} - named
        assert "unknown" not in "".join(others)


def test_a_part_that_one_cell_does_not_know_is_unknown() -> None:
    known = cell([0.1, 0.2, 0.1, 0.4], 8, 20)
    parts = probed([0.6, 0.5], [0.0001] * 4, unknown=(COMMUNICATION, OPTIMIZER))
    found = explained(known, CellTime(seconds=known.seconds, start_up=None, parts=parts))
    assert set(found.by_part) == {DATA}
    assert explain_difference(known, CellTime(seconds=None, start_up=None, parts=parts), EXAMPLES) is None
    slower = CellTime(seconds=2000.0, start_up=None, parts=parts)
    *_, text = describe_difference("A", "B", explained(known, slower))
    assert text == "Their differences in communication, optimizer, compute and start-up are unknown."


def test_without_probes_nothing_is_explained() -> None:
    known, part = cell([0.1, 0.2, 0.1, 0.4], 8, 20), PartSeconds(mean=0.8, error=0.0)
    unprobed = CellTime(
        seconds=900.0, start_up=known.start_up, parts=StepParts(samples_per_step=8, step=part, waiting=part, data=part)
    )
    assert explain_difference(known, unprobed, EXAMPLES) is None
    assert not [*describe_difference("A", "B", None)]


def test_the_sentence_names_the_parts_that_matter_the_largest_first() -> None:
    found = explained(cell([0.1, 0.5, 0.0001, 0.4], 10, 20), cell([0.1, 0.1, 0.0001, 0.5], 10, 20))
    assert [*describe_difference("ddp", "zero1", found)] == [
        "ddp needs 5 min more than zero1: 6 min 40 s more (± 277 ms) for communication"
        " and 100 s less (± 277 ms) for compute.",
        "Their differences in loading data, optimizer and start-up are within the noise.",
    ]
