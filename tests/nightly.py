"""What ``make nightly`` runs beyond ``make test``: tests marked ``nightly``, and more cases of others.

By hand, when the code that they judge changes: ``pytest -m nightly tests/simulations``, or with ``TRAINDYNO_NIGHTLY=1``
as often and with as many cases as ``make nightly``.
"""

import os
from pathlib import Path

import pytest

NIGHTLY = bool(os.environ.get("TRAINDYNO_NIGHTLY"))
REPO_ROOT = Path(__file__).resolve().parents[1]


def repeat_of(*tests: str) -> pytest.MarkDecorator:
    """``tests`` hold the same behaviour in ``make test``, named as path::name. A missing test is an error."""
    for test in tests:
        path, _, name = test.partition("::")
        assert f"\ndef {name}(" in (REPO_ROOT / path).read_text(), f"{test} is not there to hold what a repeat holds"
    return pytest.mark.nightly
