"""What a well-formed suite must also satisfy: bounds, one of each alternative, axes that mean something."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from traindyno.core.documents.problems import shown
from traindyno.core.errors import Problem
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.suite.claim import ClaimsInvalid, parse_claims
from traindyno.core.suite.job_limits_check import check_job_limits
from traindyno.core.suite.matrix_check import check_matrix, check_value
from traindyno.core.suite.points_check import check_points
from traindyno.core.suite.preference_check import check_preferences
from traindyno.core.suite.preparation import LOCAL_INSTANCE, REMOTE_INSTANCE
from traindyno.core.suite.suite import Purchase, Suite
from traindyno.core.suite.suite_bounds import check_bounds
from traindyno.core.suite.workload_check import check_workload

NAME = re.compile(r"[a-zA-Z0-9](?:-?[a-zA-Z0-9])*")
NAME_CHARACTERS = 40


def check_suite(suite: Suite) -> Iterator[Problem]:
    problems = [*check_parts(suite)]
    yield from problems
    if not problems:
        yield from check_points(suite)


def check_parts(suite: Suite) -> Iterator[Problem]:
    yield from _check_name(suite.name)
    yield from check_bounds(suite)
    yield from check_workload(suite.workload)
    yield from check_job_limits(suite)
    yield from _check_purchase(suite)
    yield from _check_preparation(suite)
    yield from _check_claims(suite)
    yield from check_preferences(suite)
    yield from check_matrix(suite)
    for path, point in _points(suite):
        for name, value in point.items():
            yield from check_value(f"{path}.{name}", name, value)


def _check_name(name: str) -> Iterator[Problem]:
    if not NAME.fullmatch(name) or len(name) > NAME_CHARACTERS:
        expected = f"1 to {NAME_CHARACTERS} letters, digits and single hyphens, as in albert-scaling"
        yield Problem(path="name", message=f"expected {expected}, got {shown(name)}")


def _check_purchase(suite: Suite) -> Iterator[Problem]:
    if suite.purchase is Purchase.SPOT and suite.warm_pool_seconds:
        message = "expected 0 with purchase spot, which can't keep instances warm, got"
        yield Problem(path="warm_pool_seconds", message=f"{message} {suite.warm_pool_seconds}")
    for name in suite.training_plans:
        yield from check_value(f"training_plans.{name}", "instance", name)


def _check_preparation(suite: Suite) -> Iterator[Problem]:
    name = suite.preparation.instance
    if name is None:
        return
    yield from check_value("preparation.instance", "instance", name)
    found = find_instance_type(name)
    if found and found.has_accelerator:
        message = f"expected a type without accelerators, such as {REMOTE_INSTANCE} or {LOCAL_INSTANCE}, got"
        yield Problem(path="preparation.instance", message=f"{message} {shown(name)}")


def _check_claims(suite: Suite) -> Iterator[Problem]:
    if suite.claims is None:
        return
    try:
        parse_claims(suite.claims)
    except ClaimsInvalid as error:
        for problem in error.problems:
            yield Problem(path=f"claims.{problem.path}" if problem.path else "claims", message=problem.message)


def _points(suite: Suite) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "training", suite.training
    yield "baseline", suite.baseline
    for section in ("include", "exclude"):
        for index, entry in enumerate(getattr(suite, section)):
            yield f"{section}[{index}]", entry
