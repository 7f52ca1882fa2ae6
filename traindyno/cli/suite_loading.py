"""Load and check a suite file; problems become lines with place, value found and values accepted."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from traindyno.cli.local_paths import find_local, find_path_problems
from traindyno.cli.suite_text import SuiteText, SuiteUnreadable, read_suite_text
from traindyno.core.errors import Problem, SuiteInvalid, TraindynoError
from traindyno.core.suite.cells import expand_cells
from traindyno.core.suite.processes import tensor_degrees
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import parse_suite

CLAIMS_SHAPE = "title, source and claims"
MODEL_FILE = "config.json"
NEEDED_FOR_MODELS = ("transformers", "torch", "training")


class SuiteFileInvalid(TraindynoError):
    """A suite file with problems, each with its file and line."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = tuple(lines)
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSuite:
    """``document`` is the file's content without defaults, with the content of its claims file.

    The state machine receives it as its input.
    """

    text: SuiteText
    document: dict[str, Any]
    suite: Suite


def load_suite(path: Path) -> LoadedSuite:
    text = read_suite_text(path)
    document = _with_claims(text)
    try:
        return LoadedSuite(text=text, document=document, suite=parse_suite(document))
    except SuiteInvalid as error:
        lines = [f"{text.place(problem.path)}: {problem}" for problem in error.problems]
        raise SuiteFileInvalid(lines) from error


def load_startable_suite(path: Path) -> LoadedSuite:
    """``load_suite``, and a check that the local files exist and that the model can be built.

    Raises SuiteFileInvalid with all problems of that kind.
    """
    loaded = load_suite(path)
    beside = path.parent
    problems = [*find_path_problems(loaded.document["workload"], beside)]
    problems = problems or find_model_problems(loaded.suite, beside)
    if problems:
        raise SuiteFileInvalid([f"{loaded.text.place(problem.path)}: {problem}" for problem in problems])
    return loaded


def _with_claims(text: SuiteText) -> dict[str, Any]:
    named = text.document.get("claims")
    if not isinstance(named, str):
        return text.document
    path = text.source.parent / named
    if not path.is_file():
        message = f"claims: {path}: can't be read: expected a file with {CLAIMS_SHAPE}"
        raise SuiteFileInvalid([f"{text.place('claims')}: {message}"])
    try:
        return {**text.document, "claims": read_suite_text(path, fields=CLAIMS_SHAPE).document}
    except SuiteUnreadable as error:
        raise SuiteFileInvalid([f"{text.place('claims')}: claims: {error}"]) from error


def find_model_problems(suite: Suite, beside: Path) -> list[Problem]:
    """A model on the Hub is checked if its configuration is cached; the check downloads nothing.

    Without transformers or the container's code, only the preparation job checks the model.
    """
    model = suite.workload.model
    if model is None or any(find_spec(name) is None for name in NEEDED_FOR_MODELS):
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
