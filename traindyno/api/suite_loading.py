"""A suite from a file, a text or Python values, checked; problems say place, value found and values
accepted.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from traindyno.api.chat_check import find_chat_problems
from traindyno.api.local_paths import find_argument_problems, find_local, find_path_problems
from traindyno.api.model_check import find_model_problems
from traindyno.api.suite_defaults import FIELDS_AT_THE_TOP, CompletedSuite
from traindyno.api.suite_draft import Default
from traindyno.api.suite_text import SuiteText, SuiteUnreadable, parse_suite_text, read_suite_text
from traindyno.core.errors import Problem, SuiteInvalid
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite import Suite as CheckedSuite
from traindyno.features import FEATURES

# Where `run` would put a local model; a plan asks only whether it is in S3.
STAGED_MODEL = "s3://staged/model/"
TEXT = Path("<text>")
Place = Callable[[str], str]


class SuiteFileInvalid(SuiteInvalid):
    """A suite's text with problems; ``lines`` have each with its file and line."""

    def __init__(self, problems: Sequence[Problem], place: Place) -> None:
        super().__init__(problems)
        self.lines = tuple(f"{place(problem.path)}: {problem}" for problem in problems)
        self.args = ("\n".join(self.lines),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """A suite that has passed the checks; ``suite`` has its settings, with all defaults.

    ``document`` is what was written, with the content of its claims file and with what the file
    left out to its data, its model and this machine (``defaults``): the state machine receives it
    as its input. Relative paths in it start at ``folder``. ``text`` is None if no text was read.
    """

    document: dict[str, Any]
    suite: CheckedSuite
    folder: Path
    text: SuiteText | None = None
    defaults: tuple[Default, ...] = ()
    cautions: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """What the file leaves out, and what in its data is likely a mistake, for a person."""
        return [
            *(f"default {default}" for default in self.defaults),
            *(f"caution: {caution}" for caution in self.cautions),
        ]

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, local: bool = False) -> "Suite":
        """Read a suite file.

        ``local`` says that the suite runs on this machine, from which it then takes what it leaves
        out. Raises SuiteUnreadable, or SuiteInvalid with all problems.
        """
        return load_suite(Path(path), local=local)

    @classmethod
    def from_text(
        cls, text: str, *, folder: str | os.PathLike[str] = ".", local: bool = False
    ) -> "Suite":
        """YAML, or JSON. Raises SuiteUnreadable, or SuiteInvalid with all problems."""
        return _checked(parse_suite_text(text, TEXT), Path(folder), local=local)

    @classmethod
    def of(
        cls, *, folder: str | os.PathLike[str] = ".", local: bool = False, **sections: Any
    ) -> "Suite":
        """Make a suite of the sections of a suite file.

        ``sections`` are ``name``, ``goal``, ``workload``, ``matrix`` and so on. Raises SuiteInvalid
        with all problems.
        """
        completed = CompletedSuite(
            _plain(sections),
            stem="suite",
            folder=Path(folder),
            is_local=local,
            features=FEATURES,
        )
        return _parsed(completed, Path(folder))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        matrix: Mapping[str, Sequence[Any]],
        inputs: Any = None,
        decisions: Any = None,
        folder: str | os.PathLike[str] = ".",
    ) -> "Suite":
        """Make a suite whose baseline is the job of ``estimator.fit(inputs)`` of the SageMaker SDK
        2, beside the values of ``matrix``. Nothing is sent.

        ``decisions`` is a ``Decisions`` with what no job says. Raises JobNotImportable, or
        SuiteInvalid with what is missing.
        """
        from traindyno import from_estimator  # noqa: PLC0415  (it finds the slice, if it is there)

        imported = from_estimator(estimator, decisions, inputs=inputs)
        training = dict(imported.document["training"])
        base = {name: training.pop(name) for name in matrix if name in training}
        baseline = {"baseline": base} if base else {}
        sections: dict[str, Any] = {**imported.document, **baseline, "training": training}
        return cls.of(folder=folder, **{**sections, "matrix": dict(matrix)})

    @property
    def staged(self) -> CheckedSuite:
        """The suite as a plan counts its jobs: ``run`` uploads a local model, so that no job copies
        it from the Hub.
        """
        workload = self.suite.workload
        model = workload.model
        if model is None or model.path is None or find_local(model.path, self.folder) is None:
            return self.suite
        return replace(
            self.suite, workload=replace(workload, model=replace(model, path=STAGED_MODEL))
        )


def load_suite(path: Path, *, local: bool = False) -> Suite:
    return _checked(read_suite_text(path), path.parent, local=local)


def load_startable_suite(path: Path, *, local: bool = False) -> Suite:
    """Load a suite, and check that it can start."""
    loaded = load_suite(path, local=local)
    check_startable(loaded)
    return loaded


def check_startable(suite: Suite) -> None:
    """Whether the local files exist and the model can be built.

    Raises SuiteInvalid with all problems of that kind.
    """
    problems = [*find_path_problems(suite.document["workload"], suite.folder)]
    problems = problems or [*find_argument_problems(suite.suite, suite.folder)]
    problems = problems or find_model_problems(suite.suite, suite.folder)
    problems = problems or find_chat_problems(suite.suite, suite.folder)
    if problems:
        raise (
            SuiteInvalid(problems)
            if suite.text is None
            else SuiteFileInvalid(problems, suite.text.place)
        )


def _checked(text: SuiteText, folder: Path, *, local: bool) -> Suite:
    document = _with_linked_files(text, folder)
    completed = CompletedSuite(
        document, stem=text.source.stem, folder=folder, is_local=local, features=FEATURES
    )
    tops = {path: re.split(r"[.\[]", path)[0] for path in text.line_of}
    sections = {name: section for section, names in FIELDS_AT_THE_TOP.items() for name in names}
    moved = {
        f"{sections[top]}.{path}": text.line_of[path]
        for path, top in tops.items()
        if top in sections
    }
    text = replace(text, line_of={**moved, **text.line_of})
    try:
        return replace(_parsed(completed, folder), text=text)
    except SuiteInvalid as error:
        raise SuiteFileInvalid(error.problems, text.place) from error


def _parsed(completed: CompletedSuite, folder: Path) -> Suite:
    """Raises SuiteInvalid with what the data leaves open and all other problems of form."""
    try:
        suite = parse_suite(completed.document, FEATURES)
    except SuiteInvalid as error:
        others = [problem for problem in error.problems if problem.path not in completed.open_paths]
        raise SuiteInvalid([*completed.problems, *others]) from error
    if completed.problems:
        raise SuiteInvalid(completed.problems)
    defaults = tuple(completed.defaults)
    cautions = tuple(completed.cautions)
    return Suite(
        document=completed.document,
        suite=suite,
        folder=folder,
        defaults=defaults,
        cautions=cautions,
    )


def _plain(sections: Mapping[str, Any]) -> dict[str, Any]:
    """The values as JSON has them, which is what the state machine receives."""
    try:
        plain: dict[str, Any] = json.loads(json.dumps(sections, default=_as_json))
    except (TypeError, ValueError, RecursionError) as error:
        message = (
            f"a value has no JSON form ({error}); accepted: text, numbers, true, false, None, "
            "paths, lists, mappings"
        )
        raise SuiteInvalid([Problem(path="", message=message)]) from error
    return plain


def _as_json(value: Any) -> str | float:
    """A Decimal as a number; others as a path, or a TypeError."""
    return float(value) if isinstance(value, Decimal) else os.fspath(value)


def _with_linked_files(text: SuiteText, folder: Path) -> dict[str, Any]:
    document = dict(text.document)
    for feature in FEATURES:
        section = feature.name
        shape = feature.file_shape
        named = document.get(section)
        if shape is None or not isinstance(named, str):
            continue
        path = folder / named
        if not path.is_file():
            message = f"{path} is no file of this machine; expected a file with {shape}"
            raise SuiteFileInvalid([Problem(path=section, message=message)], text.place)
        try:
            document[section] = read_suite_text(path, fields=shape).document
        except SuiteUnreadable as error:
            raise SuiteFileInvalid(
                [Problem(path=section, message=str(error))], text.place
            ) from error
    return document
