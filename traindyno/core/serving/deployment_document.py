"""The document of a deployment, which is the input of the deployments' state machine: written, read and checked."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from cattrs.errors import BaseValidationError

from traindyno.core.documents.converter import strict_converter
from traindyno.core.documents.extent import excess_of
from traindyno.core.documents.problems import FieldProblems, Unexpected, problems_of, shown
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import DocumentInvalid, Problem
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.serving.deployment import (
    CHECK_SUFFIX,
    NAME_CHARACTERS,
    SERVED_TASKS,
    SERVING_INSTANCE,
    Hosting,
    ModelDeployment,
)
from traindyno.core.serving.lifetime import limit_problems
from traindyno.core.suite.choices import Task

# SageMaker's pattern for the names of endpoints, models and transform jobs
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
OWNER = re.compile(r"[\w\s.:/=+\-@]{1,256}")
OWNER_RULE = "1 to 256 letters, digits, spaces and . : / = + - @ _"
SERVERLESS_MIB = (1024, 2048, 3072, 4096, 5120, 6144)


def deployment_document(deployment: ModelDeployment) -> dict[str, Any]:
    document: dict[str, Any] = to_document(deployment)
    return {name: value for name, value in document.items() if value is not None}


def parse_deployment(document: Mapping[str, Any], *, lab: str) -> ModelDeployment:
    """Raises DocumentInvalid with every problem."""
    if excess := excess_of(document):
        raise DocumentInvalid([excess])
    try:
        found: ModelDeployment = strict_converter([Hosting, Task]).structure(document, ModelDeployment)
    except (Unexpected, BaseValidationError, FieldProblems) as error:
        raise DocumentInvalid([*problems_of(error, "")]) from error
    problems = list(_problems(found, lab))
    if problems:
        raise DocumentInvalid(problems)
    return found


def _problems(deployment: ModelDeployment, lab: str) -> Iterator[Problem]:
    name = deployment.name
    if not NAME.fullmatch(name) or len(name) > NAME_CHARACTERS or not name.startswith(jobs_prefix(lab)):
        expected = f"a name of up to {NAME_CHARACTERS} letters, digits and hyphens that begins with {jobs_prefix(lab)}"
        yield Problem(path="name", message=f"got {shown(name)}, expected {expected}")
    if name.endswith(CHECK_SUFFIX):
        yield Problem(path="name", message=f"got {shown(name)}, expected a name without {CHECK_SUFFIX} at its end")
    if deployment.task not in SERVED_TASKS:
        served = ", ".join(SERVED_TASKS)
        yield Problem(path="task", message=f"got {deployment.task}, expected one of {served}")
    if not OWNER.fullmatch(deployment.owner):
        yield Problem(path="owner", message=f"got {shown(deployment.owner)}, expected {OWNER_RULE}")
    yield from _place_problems(deployment)
    yield from limit_problems(deployment)


def _place_problems(deployment: ModelDeployment) -> Iterator[Problem]:
    if deployment.hosting is Hosting.SERVERLESS:
        if deployment.memory_mib not in SERVERLESS_MIB:
            expected = ", ".join(map(str, SERVERLESS_MIB))
            yield Problem(path="memory_mib", message=f"got {shown(deployment.memory_mib)}, expected one of {expected}")
        if not 1 <= (deployment.max_concurrency or 0) <= 200:
            yield Problem(
                path="max_concurrency", message=f"got {shown(deployment.max_concurrency)}, expected 1 to 200 requests"
            )
        return
    if not (deployment.instance_type or "").startswith(("ml.", "local.")):
        yield Problem(
            path="instance_type",
            message=f"got {shown(deployment.instance_type)}, expected an instance type such as {SERVING_INSTANCE}",
        )
    if deployment.usd_per_hour is not None and deployment.usd_per_hour < 0:
        yield Problem(path="usd_per_hour", message=f"got {deployment.usd_per_hour}, expected a price of at least 0")
    if deployment.instance_count < 1:
        yield Problem(path="instance_count", message=f"got {deployment.instance_count}, expected at least 1")
    if deployment.hosting is Hosting.TRANSFORM and not (deployment.input_s3_uri or "").startswith("s3://"):
        yield Problem(
            path="input_s3_uri",
            message=f"got {shown(deployment.input_s3_uri)}, expected the S3 prefix of the requests, such as "
            "s3://bucket/requests/",
        )
