"""Documents (YAML or JSON, already loaded) to a Suite or one of its parts, and back."""

from collections.abc import Mapping
from typing import Any

from traindyno.core.documents.problems import problems_of
from traindyno.core.documents.versions import Format
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.goal import QualityTarget
from traindyno.core.suite.settings import Settings
from traindyno.core.suite.suite import Measurement, Suite, Tokens
from traindyno.core.suite.suite_converter import JOBS, WRONG_VALUE, suite_converter
from traindyno.core.suite.workload import Workload

STORED_SUITE = Format(name="stored suite", version=1)


def structure_suite(document: Mapping[str, Any]) -> Suite:
    """The suite, which the rules have not checked. Raises SuiteInvalid with all problems of form."""
    return _parse(document, Suite)  # type: ignore[no-any-return]


def suite_document(suite: Suite) -> dict[str, Any]:
    """Plain values only, money as text; ``structure_suite`` reads it back equal."""
    return suite_converter().unstructure(suite)  # type: ignore[no-any-return]


def stored_suite(suite: Suite) -> dict[str, Any]:
    """``suite_document`` with its version; ``read_stored_suite`` reads it back equal."""
    return STORED_SUITE.mark(suite_document(suite))


def read_stored_suite(document: Mapping[str, Any]) -> Suite:
    """The suite as it was accepted: today's rules about what can run do not apply. Raises VersionUnknown."""
    return suite_converter().structure(STORED_SUITE.read(document), Suite)


def settings_document(settings: Settings) -> dict[str, Any]:
    return suite_converter().unstructure(settings)  # type: ignore[no-any-return]


def workload_document(workload: Workload) -> dict[str, Any]:
    """What a job does, and so without the schedule of the full run, from which the lab only projects."""
    document = suite_converter().unstructure(workload)
    return {name: value for name, value in document.items() if name != "full_run"}


FIELDS_OF_THE_LAB = ("seed_argument", "probes", JOBS)


def measurement_document(measurement: Measurement) -> dict[str, Any]:
    """What a job needs to know: neither how its seed is passed nor which jobs there are. A running execution keeps its
    training code, which refuses a field of a later version.
    """
    document: dict[str, Any] = suite_converter().unstructure(measurement)
    return {name: value for name, value in document.items() if name not in FIELDS_OF_THE_LAB}


def target_document(target: QualityTarget) -> dict[str, Any]:
    return suite_converter().unstructure(target)  # type: ignore[no-any-return]


def parse_target(document: Mapping[str, Any]) -> QualityTarget:
    return _parse(document, QualityTarget)  # type: ignore[no-any-return]


def tokens_document(tokens: Tokens) -> dict[str, Any]:
    return suite_converter().unstructure(tokens)  # type: ignore[no-any-return]


def parse_tokens(document: Mapping[str, Any]) -> Tokens:
    return _parse(document, Tokens)  # type: ignore[no-any-return]


def parse_settings(document: Mapping[str, Any]) -> Settings:
    return _parse(document, Settings)  # type: ignore[no-any-return]


def parse_workload(document: Mapping[str, Any]) -> Workload:
    return _parse(document, Workload)  # type: ignore[no-any-return]


def parse_measurement(document: Mapping[str, Any]) -> Measurement:
    return _parse(document, Measurement)  # type: ignore[no-any-return]


def _parse(document: Any, kind: type) -> Any:
    try:
        return suite_converter().structure(document, kind)
    except WRONG_VALUE as error:
        raise SuiteInvalid(list(problems_of(error, ""))) from error
