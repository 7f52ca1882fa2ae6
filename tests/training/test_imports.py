"""A run loads only what it needs: importing takes most of a short run's billed time."""

import gc
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.training.jobs import REPO_ROOT
from training.entry.traindyno_train import collect_from_here

FOR_FILES_ONLY = ("pyarrow", "datasets", "pandas", "s3torchconnector")


@pytest.mark.parametrize(
    ("module", "unneeded"),
    [
        ("training.main", FOR_FILES_ONLY),
        ("training.data.survey", ("torch",)),
        ("traindyno.callbacks", ("torch", "boto3")),
    ],
)
def test_unneeded_modules_are_not_loaded(module: str, unneeded: Sequence[str]) -> None:
    """By a run on tokens that exist, by the survey of a plan, and by a step log."""
    code = f"import sys, {module}; print([name for name in {unneeded} if name in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=REPO_ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_garbage_is_collected_from_the_end_of_the_imports_on() -> None:
    before = gc.get_freeze_count()
    gc.disable()
    try:
        collect_from_here()
        assert gc.isenabled()
        assert gc.get_freeze_count() > before
    finally:
        gc.enable()
