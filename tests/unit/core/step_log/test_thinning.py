"""A long log has few entries, and its sums, its ends and its step numbers are those of all its steps."""

import json
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest

from tests.unit.core.step_log.test_steps import steps_of
from tests.unit.step_log_samples import START, file_name, log_lines
from traindyno.core.step_log import thinning
from traindyno.core.step_log.fields import LoggedStep
from traindyno.core.step_log.line import BATCH_SEARCH, KEPT_STEPS, phase_line
from traindyno.core.step_log.reader import StepLogInvalid, read_step_log
from traindyno.core.step_log.step_table import tabulate_steps
from traindyno.core.step_log.steps import Steps
from traindyno.core.step_log.thinning import StepWriter, thinned

MOST = 100


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thinning, "MOST_STEPS", MOST)


def written(given: list[LoggedStep]) -> Steps:
    writer = StepWriter()
    for step in given:
        writer.append(step)
    return writer.steps()


def groups(given: list[LoggedStep], stride: int) -> Iterator[list[LoggedStep]]:
    found: dict[int, list[LoggedStep]] = {}
    for step in given:
        found.setdefault((step.step - 1) // stride, []).append(step)
    yield from found.values()


@pytest.mark.parametrize("seed", range(20))
def test_each_entry_is_the_sum_of_its_group(seed: int) -> None:
    source = random.Random(seed)
    given = steps_of(source, source.randint(1, 1500))
    steps = written(given)
    assert len(steps) <= MOST + 1
    assert (steps.stride == 1) == (len(given) <= MOST)
    for entry, count, group in zip(steps, steps.counts, groups(given, steps.stride), strict=True):
        assert (entry.step, entry.begin, entry.end, count) == (
            group[-1].step,
            group[0].begin,
            group[-1].end,
            len(group),
        )
        assert entry.wait_seconds == pytest.approx(sum(step.wait_seconds for step in group), rel=1e-12)
        assert entry.samples == sum(step.samples for step in group)
        tokens = [step.tokens for step in group]
        assert entry.tokens == (None if None in tokens else sum(each for each in tokens if each is not None))
        losses = [step.loss for step in group if step.loss is not None]
        mean = sum(losses) / len(losses) if losses else None
        assert entry.loss == (mean if mean is None else pytest.approx(mean, rel=1e-9, nan_ok=True))
        assert entry.peak_memory_bytes == max(step.peak_memory_bytes or 0 for step in group) or not (
            entry.peak_memory_bytes or any(step.peak_memory_bytes for step in group)
        )
    assert list(steps.numbers) == [entry.step for entry in steps]
    assert sum(steps.counts) == len(given)


def test_the_numbers_of_a_thinned_log_without_gaps_are_a_range() -> None:
    given = [
        LoggedStep(number, START + number, START + number + 1, 0.0, 8, None, 1.0, None) for number in range(1, 1601)
    ]
    steps = written(given)
    assert steps.stride == 16
    assert steps.numbers == range(16, 1616, 16)
    assert list(steps[2:4].numbers) == [48, 64]
    assert list(steps.numbered([48, 80]).counts) == [16, 16]


def test_all_processes_are_thinned_like_the_longest() -> None:
    files = {
        file_name(rank): log_lines(rank=rank, world_size=2, first_step=1, step_seconds=[0.5] * (150 + 120 * rank))
        for rank in range(2)
    }
    log = read_step_log(files)
    assert log.measured is not None
    assert [process.steps.stride for process in log.measured.processes] == [4, 4]
    table = tabulate_steps(log.measured)
    assert list(table.numbers) == [*range(4, 149, 4)]  # the last group of the shorter log is not whole
    assert sum(table.samples) == 2 * 8 * 148
    assert any("each 4 neighbouring ones were measured as one" in problem for problem in log.problems)


@pytest.mark.parametrize("at", [50, 105, 399])
def test_the_order_of_steps_is_checked_within_a_group_too(at: int) -> None:
    lines = log_lines(first_step=1, step_seconds=[0.5] * 400)
    swapped = [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]]
    with pytest.raises(StepLogInvalid, match=rf":{at + 2}: step {at} follows step {at + 1}; expected rising numbers"):
        read_step_log({file_name(): swapped})


@pytest.mark.parametrize("kept", [0, 1, 60])
@pytest.mark.parametrize("tried", [0, 3, 40])
def test_the_steps_of_a_batch_that_did_not_fit_are_forgotten(kept: int, tried: int) -> None:
    """The steps that count have the numbers after those that were kept."""
    facts = {BATCH_SEARCH: "32 became 8", KEPT_STEPS: kept}
    before = log_lines(first_step=1, step_seconds=[0.5] * (kept + tried), samples=32, is_ended=False)
    at = START + 0.5 * (kept + tried) + 1
    search = phase_line(BATCH_SEARCH, START + 0.5 * kept, at, facts)
    after = log_lines(first_step=kept + 1, step_seconds=[0.5] * 40, samples=8, start=at)[1:]
    log = read_step_log({file_name(): [*before, json.dumps(search), *after]})
    assert log.measured is not None
    (process,) = log.measured.processes
    assert sum(process.steps.counts) == kept + 40
    assert sum(process.steps.samples) == 32 * kept + 8 * 40
    assert process.steps[-1].step == kept + 40
    assert not any("no end line" in problem or "not logged" in problem for problem in log.problems)


@pytest.mark.parametrize("facts", [{}, {KEPT_STEPS: "3"}])
def test_a_search_that_does_not_say_what_counts_is_refused(facts: dict[str, str]) -> None:
    lines = [*log_lines(first_step=1, step_seconds=[1.0]), json.dumps(phase_line(BATCH_SEARCH, START, START, facts))]
    with pytest.raises(StepLogInvalid, match="batch_search has kept_steps"):
        read_step_log({file_name(): lines})


def test_thinning_twice_is_thinning_once() -> None:
    given = steps_of(random.Random(3), 900)
    once, twice = thinned(Steps(given), 12), thinned(thinned(Steps(given), 4), 12)
    assert [(each.step, each.begin, each.end, each.samples, each.tokens) for each in once] == [
        (each.step, each.begin, each.end, each.samples, each.tokens) for each in twice
    ]
    assert list(once.counts) == list(twice.counts)
    assert all(before.step < after.step for before, after in pairwise(once))
