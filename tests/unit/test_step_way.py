"""A step's way from the training loop to the sentence: no form and no module more than its
bounds.
"""

import pytest

from bench.step_way import WAY, modules_on_the_way

MOST_FORMS, MOST_MODULES = 16, 32


def test_the_way_of_a_step_stays_short() -> None:
    found = modules_on_the_way()
    modules = set().union(*found.values())
    assert (len(found) <= MOST_FORMS, len(modules) <= MOST_MODULES) == (True, True), sorted(modules)


@pytest.mark.parametrize("way", [(*WAY[:5], *WAY[6:]), (*WAY, "Unwritten")])
def test_a_form_that_is_left_out_or_that_no_code_makes_is_noticed(way: tuple[str, ...]) -> None:
    with pytest.raises(LookupError, match="expected neighbours of WAY"):
        modules_on_the_way(way=way)
