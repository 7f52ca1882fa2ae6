"""Check a suite's model before it starts, once, where transformers is installed beside the command line."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from traindyno.api.cache_folder import cache_folder, keep, read_kept
from traindyno.api.local_paths import find_local
from traindyno.api.training_code import has_training_code, missing_libraries, training_code_digest
from traindyno.core.errors import Problem
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.processes import TensorDivision, stage_counts, tensor_divisions
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_converter import suite_converter
from traindyno.core.suite.suite_file import workload_document
from traindyno.core.suite.workload import Workload

MODEL_FILE = "config.json"
# The fields of a workload that the check reads.
DECIDING = ("task", "model", "sequence_length")


def find_model_problems(suite: Suite, beside: Path) -> list[Problem]:
    """A model on the Hub is checked if its configuration is cached; the check downloads nothing.

    Without transformers or the container's code, only the preparation job checks the model. A model without problems
    is not checked again: a plan of suites/quickstart.yaml then takes 1.2 s of a core, not 4.3 s, because it imports no
    transformers.
    """
    model = suite.workload.model
    if model is None or missing_libraries() or not has_training_code():
        return []
    path = _find_configuration(model.path, model.revision, beside) if model.path else None
    if model.path and path is None:
        return []
    settings = [cell.settings for cell in expand_cells(suite)]
    divisions, stages = tensor_divisions(settings), stage_counts(settings)
    without_problems = cache_folder("models") / _key(suite.workload, divisions, stages, path)
    if read_kept(without_problems) is not None:
        return []
    from training.models.model_check import check_model  # noqa: PLC0415  (imports transformers, which takes seconds)

    problems = [_placed(each, suite) for each in check_model(suite.workload, divisions, stages, model_path=path)]
    if not problems:
        keep(without_problems, "")
    return problems


def _placed(problem: Problem, suite: Suite) -> Problem:
    """A problem of a setting, at the place where the suite gives it."""
    name = problem.path.removeprefix("matrix.")
    included = (f"include[{index}].{name}" for index, entry in enumerate(suite.include) if name in entry)
    if name == problem.path or name in suite.matrix:
        return problem
    return replace(problem, path=f"training.{name}" if name in suite.training else next(included, problem.path))


def _key(workload: Workload, divisions: Sequence[TensorDivision], stages: Sequence[int], path: str | None) -> str:
    """64 hexadecimal digits of all inputs of the check, the checking code included."""
    document = workload_document(workload)
    content = {
        "workload": {name: document.get(name) for name in DECIDING},
        "divisions": suite_converter().unstructure(divisions),
        "stage_counts": stages,
        "configuration": _digest(Path(path) / MODEL_FILE) if path else None,
        "code": training_code_digest(),
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _digest(file: Path) -> str | None:
    """None for a file that does not exist."""
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else None


def _find_configuration(path: str, revision: str | None, beside: Path) -> str | None:
    """The folder that holds the model's configuration on this machine."""
    local = find_local(path, beside)
    if local is not None:
        return str(local)
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415  (only a Hub id needs it)
    from huggingface_hub.errors import HFValidationError  # noqa: PLC0415

    try:
        found = try_to_load_from_cache(path, MODEL_FILE, revision=revision)
    except HFValidationError:  # an S3 URI
        return None
    return str(Path(found).parent) if isinstance(found, str) else None
