"""docs/method.md shows the pictures as they are drawn."""

from xml.etree import ElementTree

import pytest

from bench.pictures import run
from bench.pictures.__main__ import FOLDER, PICTURES
from bench.pictures.canvas import page, text

PAGE = FOLDER / "method.md"


@pytest.mark.parametrize("name", PICTURES)
def test_the_page_shows_the_pictures_as_they_are_drawn(name: str) -> None:
    assert (FOLDER / name).read_text(encoding="utf-8") == PICTURES[name]()
    assert f"]({name})" in PAGE.read_text(encoding="utf-8")


def test_text_with_the_signs_of_markup_is_shown_as_it_is() -> None:
    drawn = page(100, 50, "p < 0.05 & more", [text("a < b", 0, 0)])
    root = ElementTree.fromstring(drawn)
    assert [element.text for element in root] == ["p < 0.05 & more", None, "a < b"]


def test_the_picture_of_a_run_shows_the_parts_of_its_log() -> None:
    """The step time, what recurs and what happened once are found as they were put in."""
    measured, _ = run.example()
    assert measured.steady_state.is_reached
    assert measured.steady_state.warmup_steps == run.CHANGE
    assert measured.throughput is not None
    # 1 s + 3 s ÷ 40 + 6 s ÷ 60
    assert 1 / measured.throughput.steps_per_second == pytest.approx(1.175, rel=0.005)
    assert [(phase.name, phase.step) for phase in measured.one_time] == [
        ("compile", run.COMPILATION)
    ]
