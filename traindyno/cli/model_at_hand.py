"""Check a suite's model before it starts, where transformers is installed beside the command line."""

from importlib.util import find_spec
from pathlib import Path

from traindyno.cli.local_paths import find_local
from traindyno.core.errors import Problem
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.processes import tensor_degrees
from traindyno.core.suite.suite import Suite

MODEL_FILE = "config.json"
NEEDED = ("transformers", "torch", "training")


def find_model_problems(suite: Suite, beside: Path) -> list[Problem]:
    """Nothing is downloaded: a model on the Hub is checked where its configuration is cached.

    Without transformers, or without the container's code, nothing is checked here; the preparation job does it.
    """
    model = suite.workload.model
    if model is None or any(find_spec(name) is None for name in NEEDED):
        return []
    path = _find_configuration(model.path, model.revision, beside) if model.path else None
    if model.path and path is None:
        return []
    from training.model_check import check_model  # noqa: PLC0415  (imports transformers, which takes seconds)

    degrees = tensor_degrees(cell.settings for cell in expand_cells(suite))
    return list(check_model(suite.workload, degrees, model_path=path))


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
