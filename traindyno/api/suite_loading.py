"""Load and check a suite file; problems become lines with place, value found and values accepted."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from traindyno.api.local_paths import find_local, find_path_problems
from traindyno.api.model_check import find_model_problems
from traindyno.api.suite_text import SuiteText, SuiteUnreadable, read_suite_text
from traindyno.core.errors import SuiteInvalid, TraindynoError
from traindyno.core.suite.checks.accepted_suite import parse_suite
from traindyno.core.suite.suite import Suite

CLAIMS_SHAPE = "title, source and claims"
# Where `run` would put a local model; a plan asks only whether it is in S3.
STAGED_MODEL = "s3://staged/model/"


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

    @property
    def staged(self) -> Suite:
        """The suite as a plan counts its jobs: ``run`` uploads a local model, so that no job copies it from the Hub."""
        workload = self.suite.workload
        model = workload.model
        if model is None or model.path is None or find_local(model.path, self.text.source.parent) is None:
            return self.suite
        return replace(self.suite, workload=replace(workload, model=replace(model, path=STAGED_MODEL)))


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
        message = f"claims: {path} is no file of this machine; expected a file with {CLAIMS_SHAPE}"
        raise SuiteFileInvalid([f"{text.place('claims')}: {message}"])
    try:
        return {**text.document, "claims": read_suite_text(path, fields=CLAIMS_SHAPE).document}
    except SuiteUnreadable as error:
        raise SuiteFileInvalid([f"{text.place('claims')}: claims: {error}"]) from error
