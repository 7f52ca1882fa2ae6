"""One deployment of a trained model: the input of the deployments' state machine."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import Any

from cattrs.errors import BaseValidationError

from traindyno.core.documents.converter import strict_converter
from traindyno.core.documents.extent import excess_of
from traindyno.core.documents.problems import FieldProblems, Unexpected, problems_of, shown
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import DocumentInvalid, Problem, TraindynoError
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.suite.choices import Task

# SageMaker's pattern for the names of endpoints, models and transform jobs
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
NAME_CHARACTERS = 57  # the suffix of its check job makes it SageMaker's 63
CHECK_SUFFIX = "-check"
SUITE_NAME_CHARACTERS = 15
OWNER = re.compile(r"[\w\s.:/=+\-@]{1,256}")
SERVERLESS_MIB = (1024, 2048, 3072, 4096, 5120, 6144)
# The type of an endpoint if the user chooses none, as in the post about Trainium
SERVING_INSTANCE = "ml.c5.xlarge"
SERVED_TASKS = (Task.CAUSAL_LM, Task.MASKED_LM, Task.SEQUENCE_CLASSIFICATION)


class Hosting(StrEnum):
    """``endpoint``: instances that answer in real time; ``serverless``: an endpoint without instances of its own."""

    ENDPOINT = "endpoint"
    SERVERLESS = "serverless"
    TRANSFORM = "transform"


class ModelNotServable(TraindynoError):
    """The run saved no model that the inference handler can serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDeployment:
    """``name`` is that of the endpoint or transform job, and of its model.

    ``job_name`` is the training job that saved the model. ``usd_per_hour`` is of one instance; None is unknown.
    ``expires_at``, epoch seconds: when an endpoint is deleted; None keeps it. A transform job ends by itself.
    """

    name: str
    hosting: Hosting
    suite_name: str
    execution_id: str
    cell_id: str
    run_id: str
    job_name: str
    task: Task
    owner: str
    instance_type: str | None = None
    instance_count: int = 1
    memory_mib: int | None = None
    max_concurrency: int | None = None
    usd_per_hour: Decimal | None = None
    price_source: str | None = None
    expires_at: float | None = None
    input_s3_uri: str | None = None

    @property
    def is_endpoint(self) -> bool:
        return self.hosting is not Hosting.TRANSFORM

    @property
    def all_instances_usd_per_hour(self) -> Decimal | None:
        """None if the price is unknown, and for a serverless endpoint, which bills by requests."""
        return None if self.usd_per_hour is None else self.usd_per_hour * self.instance_count


def deployment_name(*, lab: str, suite_name: str, cell_id: str, unique: str) -> str:
    """A name of at most ``NAME_CHARACTERS`` that begins with the lab's prefix, to which the IAM roles are limited."""
    suite_part = suite_name[:SUITE_NAME_CHARACTERS].rstrip("-")
    return f"{jobs_prefix(lab)}{suite_part}-{cell_id}-{unique}"[:NAME_CHARACTERS].rstrip("-")


def check_job_name(name: str) -> str:
    """The transform job that answers the evaluation samples before the deployment's own job starts."""
    return f"{name}{CHECK_SUFFIX}"


def deployment_of(job_name: str) -> str:
    """The deployment that an endpoint or transform job belongs to."""
    return job_name.removesuffix(CHECK_SUFFIX)


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
        expected = "1 to 256 letters, digits, spaces and . : / = + - @ _"
        yield Problem(path="owner", message=f"got {shown(deployment.owner)}, expected {expected}")
    yield from _place_problems(deployment)


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
    if deployment.instance_count < 1:
        yield Problem(path="instance_count", message=f"got {deployment.instance_count}, expected at least 1")
    if deployment.hosting is Hosting.TRANSFORM and not (deployment.input_s3_uri or "").startswith("s3://"):
        yield Problem(
            path="input_s3_uri",
            message=f"got {shown(deployment.input_s3_uri)}, expected the S3 prefix of the requests, such as "
            "s3://bucket/requests/",
        )
