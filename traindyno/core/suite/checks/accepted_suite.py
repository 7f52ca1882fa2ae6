"""A suite document to a Suite that can run; its problems come in two passes."""

from collections.abc import Mapping
from typing import Any

from traindyno.core.documents.extent import excess_of
from traindyno.core.errors import SuiteInvalid
from traindyno.core.suite.checks.secrets_check import check_secrets
from traindyno.core.suite.checks.suite_check import check_suite
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import structure_suite


def parse_suite(document: Mapping[str, Any]) -> Suite:
    """Raises SuiteInvalid with all problems of form; without any, with all problems of content."""
    excess = excess_of(document)
    if excess is not None:
        raise SuiteInvalid([excess])
    suite = structure_suite(document)
    problems = [*check_secrets(document), *check_suite(suite)]
    if problems:
        raise SuiteInvalid(problems)
    return suite
