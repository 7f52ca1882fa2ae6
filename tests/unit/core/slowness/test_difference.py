"""Why one cell takes less time than another, where the truth is known."""

import re
from itertools import product
from random import Random

import pytest

from traindyno.core.measurement.step_parts import PartSeconds, StepParts
from traindyno.core.slowness.difference import (
    COMMUNICATION,
    COMPUTE,
    OPTIMIZER,
    START_UP,
    STEP_PARTS,
    CellTime,
    explain_difference,
)
from traindyno.core.slowness.slowness_text import describe_difference, describe_parts

EXAMPLES = 10_000


def exact(mean: float) -> PartSeconds:
    return PartSeconds(mean=mean, error=0.001)


def cell(seconds: list[float], samples: float, start_up: float, *, extra: float = 0.0) -> CellTime:
    step = exact(sum(seconds))
    data, communication, optimizer, compute = map(exact, seconds)
    parts = StepParts(
        samples_per_step=samples,
        step=step,
        waiting=data,
        data=data,
        communication=communication,
        optimizer=optimizer,
        compute=compute,
        is_probed=True,
    )
    whole = sum(seconds) * EXAMPLES / samples + start_up + extra
    return CellTime(seconds=whole, start_up_seconds=start_up, parts=parts)


@pytest.mark.parametrize("seed", range(10))
def test_the_difference_is_split_as_the_cells_differ(seed: int) -> None:
    random = Random(seed)
    first, second = ([random.uniform(0, 0.3) for _ in STEP_PARTS] for _ in range(2))
    samples = random.choice([8, 16, 64])
    found = explain_difference(cell(first, samples, 20), cell(second, 2 * samples, 50, extra=7), EXAMPLES)
    assert found is not None
    for name, a, b in zip(STEP_PARTS, first, second, strict=True):
        assert found.by_part[name] == pytest.approx((a - b / 2) * EXAMPLES / samples)
    assert found.by_part[START_UP] == -30
    assert found.unexplained == pytest.approx(-7)
    assert sum(found.by_part.values()) + found.unexplained == pytest.approx(found.seconds)


def test_a_part_that_one_cell_does_not_know_is_unexplained() -> None:
    known = cell([0.1, 0.2, 0.1, 0.4], 8, 20)
    assert known.parts is not None
    parts = StepParts(samples_per_step=8, step=exact(0.6), waiting=exact(0.1), data=exact(0.1), is_probed=True)
    found = explain_difference(known, CellTime(seconds=known.seconds, start_up_seconds=None, parts=parts), EXAMPLES)
    assert found is not None
    assert set(found.by_part) == {"data"}
    assert explain_difference(known, CellTime(seconds=None, start_up_seconds=1, parts=None), EXAMPLES) is None


def test_the_sentence_names_the_parts_that_matter_the_largest_first() -> None:
    found = explain_difference(cell([0.1, 0.5, 0, 0.4], 10, 20), cell([0.1, 0.1, 0, 0.5], 10, 20), EXAMPLES)
    (text,) = describe_difference("ddp", "zero1", found)
    assert text == "ddp needs 5 min more than zero1: +6 min 40 s communication, −100 s compute."
    assert found is not None
    assert set(found.by_part) == {*STEP_PARTS, START_UP}
    assert not [*describe_difference("a", "b", None)]


@pytest.mark.parametrize("data", [0.0, 0.3])
@pytest.mark.parametrize("values", list(product((None, 0.0, -0.01, 0.2), repeat=3)))
def test_every_set_of_known_parts_is_a_whole_sentence(values: tuple[float | None, ...], data: float) -> None:
    """Each known part that takes time is named with its share, each unknown one as unknown, and nothing is empty."""
    known = dict(zip((COMMUNICATION, OPTIMIZER, COMPUTE), values, strict=True))
    parts = StepParts(
        samples_per_step=8,
        step=exact(1),
        waiting=exact(data),
        data=exact(data),
        is_probed=True,
        **{name: None if value is None else exact(value) for name, value in known.items()},
    )
    texts = [*describe_parts("ddp", parts, None)]
    about_data, others = [text for text in texts if "data" in text], [text for text in texts if "data" not in text]
    assert bool(about_data) == (data > 0)
    assert bool(others) == any(value is None or value > 0 for value in values)
    for text in others:
        assert text.startswith(
            ("The rest of it is ", "Of the rest of it, ") if data else ("A step of ddp is ", "Of a ")
        )
        assert not re.search(r" [;,.]|[;,] ?[;,.]|is ;|  |and can't", text)
    for name, value in known.items():
        assert (name in "".join(others)) == (value is None or value > 0)
        assert (f"20 % (± 0 %) {name}" in "".join(others)) == (value == 0.2)
    unknown = values.count(None)
    assert ("can't be told apart" in "".join(others)) == (unknown > 1)
    assert ("is unknown" in "".join(others)) == (unknown == 1)


def test_a_step_is_described_by_what_is_known_of_it() -> None:
    parts = cell([0.31, 0.2, 0.09, 0.4], 8, 20).parts
    assert parts is not None
    waits, rest = describe_parts("ddp", parts, None)
    assert waits == "31 % (± 0 %) of a step of ddp waits for data."
    assert rest == "The rest of it is 20 % (± 0 %) communication, 40 % (± 0 %) compute, 9 % (± 0 %) optimizer."
    unknown = StepParts(
        samples_per_step=8, step=exact(1), waiting=exact(0), data=exact(0), optimizer=exact(0.1), is_probed=True
    )
    (text,) = describe_parts("fsdp", unknown, None)
    assert text == f"A step of fsdp is 10 % (± 0 %) optimizer; {COMMUNICATION} and {COMPUTE} can't be told apart."
    assert not [
        *describe_parts("script", StepParts(samples_per_step=8, step=exact(1), waiting=exact(0), data=exact(0)), None)
    ]
    assert not [*describe_parts("old", None, None)]
