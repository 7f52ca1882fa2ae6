"""Figures of `make bench`: budgets, tables, the document that keeps what was not measured, counted
transitions.
"""

from pathlib import Path
from typing import Any

import pytest

from bench.alternation import alternate
from bench.demo import job_seconds
from bench.document import BEGIN, END, merge, read_results, stored_section, summary, write
from bench.figure_text import figure_row
from bench.figures import Figure, Section, Spread, at_least, at_most, spread
from bench.gpu import is_named
from bench.transitions import transitions


def figure(value: float | Spread | None, **more: object) -> Figure:
    return Figure(name="wall", value=value, unit="s", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("budget", "value", "is_met"),
    [
        (at_most(240), 240, True),
        (at_most(240), 240.1, False),
        (at_least(1.25), 1.25, True),
        (at_least(1.25), 1.249, False),
        (at_most(240), None, None),
        (None, 500, None),
    ],
)
def test_a_budget_is_met_up_to_its_limit_and_unknown_is_neither(
    budget: object, value: float, is_met: bool
) -> None:
    assert figure(value, budget=budget).is_met is is_met


def test_the_median_of_repetitions_is_compared_with_the_budget() -> None:
    repeated = spread([100.0, 1.0, 2.0])
    assert (repeated.median, repeated.least, repeated.most, repeated.count) == (2.0, 1.0, 100.0, 3)
    assert figure(repeated, budget=at_most(2)).is_met is True


def test_a_row_shows_value_extent_budget_and_verdict() -> None:
    repeated = spread([3.0, 1.5, 2.25])
    assert figure_row(figure(repeated, budget=at_most(2))) == (
        "wall",
        "2.25 s",
        "1.50 – 3 (3)",
        "≤ 2 s",
        "**no**",
    )
    assert figure_row(figure(None, budget=at_most(2))) == ("wall", "unknown", "", "≤ 2 s", "")


def test_two_things_are_run_in_turn_and_compared_round_by_round() -> None:
    ran: list[str] = []
    values = iter([2.0, 6.0, 4.0, 8.0])

    def take(name: str) -> float:
        ran.append(name)
        return next(values)

    compared = alternate(lambda: take("a"), lambda: take("b"), rounds=2)
    assert ran == ["a", "b", "a", "b"]
    # 6 ÷ 2 = 3 and 8 ÷ 4 = 2: the median of two is 2.5; both differences are 4
    assert compared.ratio == Spread(median=2.5, least=2.0, most=3.0, count=2)
    assert compared.difference == Spread(median=4.0, least=4.0, most=4.0, count=2)


def stored(title: str, origin: str) -> dict[str, Any]:
    section = Section(
        title=title, command="python -m bench x", figures=(figure(1.0),), notes=("A note.",)
    )
    return stored_section(section, origin)


def test_unmeasured_sections_are_kept_and_all_keep_their_order() -> None:
    titles = ["A", "B", "C"]
    first = merge({}, {"B": stored("B", "Monday"), "C": stored("C", "Monday")}, titles)
    second = merge(first, {"A": stored("A", "Tuesday"), "C": stored("C", "Tuesday")}, titles)
    assert {title: section["origin"] for title, section in second.items()} == {
        "A": "Tuesday",
        "B": "Monday",
        "C": "Tuesday",
    }
    assert list(second) == titles
    assert merge(second, {}, titles) == second


def test_sections_of_former_groups_go() -> None:
    before = {"Old": stored("Old", "Monday")}
    assert list(merge(before, {"New": stored("New", "Tuesday")}, ["New"])) == ["New"]


def test_writing_a_section_keeps_the_words_around_the_summary(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    results = tmp_path / "results.json"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    missed = Section(title="A", command="x", figures=(figure(3.0, budget=at_most(2)),))
    write(page, results, missed, "Monday · here", ["A"])
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("\nafter\n")
    assert "| A | `x` | Monday | 0 of 1 |" in page.read_text()
    assert "- wall: 3 s, budget ≤ 2 s." in page.read_text()
    assert summary(read_results(results)) in page.read_text()


def test_a_retry_of_a_task_is_a_transition_and_its_entry_is_not_counted_twice() -> None:
    attempts = ["TaskScheduled", "TaskFailed", "TaskScheduled", "TaskSucceeded"]
    kinds = [
        "ExecutionStarted",
        "ChoiceStateEntered",
        "TaskStateEntered",
        *attempts,
        "TaskStateExited",
    ]
    events = [{"type": kind} for kind in [*kinds, "MapStateEntered"]]
    assert transitions(events) == ["Choice", "Task", "Task", "Map"]


@pytest.mark.parametrize(
    ("device", "accelerator", "expected"),
    [
        ("NVIDIA H200", "NVIDIA H200", True),
        ("NVIDIA H100 80GB HBM3", "NVIDIA H100", True),
        ("NVIDIA H100 PCIe", "NVIDIA H100", False),
        ("NVIDIA L40S", "NVIDIA L4", False),
    ],
)
def test_a_devices_peak_is_not_taken_from_a_like_named_one(
    device: str, accelerator: str, expected: bool
) -> None:
    assert is_named(device, accelerator) is expected


def test_a_shared_job_lasts_until_its_last_run_has_ended_and_counts_once() -> None:
    def attempt(job_name: str, ended_at: float) -> dict[str, object]:
        return {"job_name": job_name, "submitted_at": 100.0, "ended_at": ended_at}

    runs = [
        [attempt("j1", 160.0)],
        [attempt("j1", 180.0), attempt("j2", 110.0)],
        [attempt("j1", 120.0)],
    ]
    assert job_seconds([{"attempts": attempts} for attempts in runs]) == 80 + 10
