"""A suite document (YAML or JSON, already loaded) to a Suite and back; every problem of it at once."""

from collections.abc import Mapping
from typing import Any

from traindyno.core.document_problems import problems_of
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite import Measurement, Settings, Suite, Workload
from traindyno.core.suite_check import check_suite
from traindyno.core.suite_converter import RENAMED, WRONG_VALUE, suite_converter


def parse_suite(document: Mapping[str, Any]) -> Suite:
    """Raises SuiteInvalid with all problems: first those of form, and where the form is right, those of content."""
    suite: Suite = _parse(document, Suite)
    problems = list(check_suite(suite))
    if problems:
        raise SuiteInvalid(problems)
    return suite


def suite_document(suite: Suite) -> dict[str, Any]:
    """Plain values only, money as text; ``parse_suite`` reads it back equal."""
    return suite_converter().unstructure(suite)  # type: ignore[no-any-return]


def settings_document(settings: Settings) -> dict[str, Any]:
    return suite_converter().unstructure(settings)  # type: ignore[no-any-return]


def workload_document(workload: Workload) -> dict[str, Any]:
    return suite_converter().unstructure(workload)  # type: ignore[no-any-return]


def measurement_document(measurement: Measurement) -> dict[str, Any]:
    return suite_converter().unstructure(measurement)  # type: ignore[no-any-return]


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
        raise SuiteInvalid(list(problems_of(error, "", RENAMED))) from error
