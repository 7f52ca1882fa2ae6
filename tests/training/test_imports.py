"""A run loads only what it needs: importing takes most of a short run's billed time."""

import gc
import subprocess
import sys

from tests.training.jobs import REPO_ROOT
from training.entry.traindyno_train import collect_from_here

FOR_FILES_ONLY = ("pyarrow", "datasets", "pandas", "s3torchconnector")


def test_a_run_on_tokens_that_exist_loads_nothing_that_reads_files() -> None:
    code = f"import sys, training.main; print([name for name in {FOR_FILES_ONLY} if name in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], cwd=REPO_ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_the_survey_of_a_plan_loads_no_pytorch() -> None:
    code = "import sys, training.data.survey; print('torch' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", code], cwd=REPO_ROOT, capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "False"


def test_garbage_is_collected_from_the_end_of_the_imports_on() -> None:
    before = gc.get_freeze_count()
    gc.disable()
    try:
        collect_from_here()
        assert gc.isenabled()
        assert gc.get_freeze_count() > before
    finally:
        gc.enable()
