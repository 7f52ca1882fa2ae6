"""End-to-end tests whose behaviour a faster test of ``make test`` holds. Only ``make nightly`` runs them."""

import os

import pytest

from tests.local.forked_programs import REPO_ROOT

VARIABLE = "TRAINDYNO_REPEATS"
REPEATS = bool(os.environ.get(VARIABLE))  # make nightly sets the variable


def repeat_of(*tests: str) -> pytest.MarkDecorator:
    """``tests`` hold the same behaviour in ``make test``, named as path::name. A missing test is an error."""
    for test in tests:
        path, _, name = test.partition("::")
        assert f"\ndef {name}(" in (REPO_ROOT / path).read_text(), f"{test} is not there to hold what a repeat holds"
    return pytest.mark.skipif(not REPEATS, reason=f"make nightly sets {VARIABLE}; held by {', '.join(tests)}")
