"""One deployment of a trained model: its document, and how long it may exist."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import floor
from typing import Any

from cattrs.errors import BaseValidationError

from traindyno.core.costs.money import exact_usd_text
from traindyno.core.costs.prices import SECONDS_PER_HOUR, cost_usd
from traindyno.core.documents.converter import strict_converter
from traindyno.core.documents.extent import excess_of
from traindyno.core.documents.problems import FieldProblems, Unexpected, problems_of, shown
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import DocumentInvalid, Problem, TraindynoError
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.suite.choices import Task

# SageMaker's pattern for the names of endpoints and models
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
OWNER = re.compile(r"[\w\s.:/=+\-@]{1,256}")
OWNER_RULE = "1 to 256 letters, digits, spaces and . : / = + - @ _"
IMAGE_REPOSITORY = "pytorch-inference"
# The type of an endpoint if the user chooses none, as in the post about Trainium
SERVING_INSTANCE = "ml.c5.xlarge"
MOST_INSTANCES = 100
YEAR_3000 = 32_503_680_000
SERVED_TASKS = (Task.CAUSAL_LM, Task.MASKED_LM, Task.SEQUENCE_CLASSIFICATION)
# The next sweep comes within 5 minutes. 5 more are reserved until SageMaker has deleted what the sweep ends.
NOTICE_SECONDS = 600
START_SECONDS = 600
LEAST_PAID_SECONDS = START_SECONDS + NOTICE_SECONDS


class ModelNotServable(TraindynoError):
    """The run saved no model that the inference handler can serve, or the lab can't serve it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDeployment:
    """``name`` is that of the endpoint, its configuration and its model; ``job_name`` that of the training job.

    ``usd_per_hour`` is of one instance; None is unknown. ``expires_at``, epoch seconds: when the endpoint is deleted;
    None keeps it. ``max_usd``: it is deleted before it costs more; None is no such limit.
    """

    name: str
    suite_name: str
    execution_id: str
    cell_id: str
    run_id: str
    job_name: str
    task: Task
    owner: str
    instance_type: str
    instance_count: int = 1
    usd_per_hour: Decimal | None = None
    price_source: str | None = None
    expires_at: float | None = None
    max_usd: Decimal | None = None

    @property
    def all_instances_usd_per_hour(self) -> Decimal | None:
        return None if self.usd_per_hour is None else self.usd_per_hour * self.instance_count

    @property
    def paid_seconds(self) -> int | None:
        """The whole seconds of all instances that ``max_usd`` pays for; None without it, or if the price is unknown."""
        usd_per_hour = self.all_instances_usd_per_hour
        if self.max_usd is None or not usd_per_hour:
            return None
        return floor(self.max_usd * SECONDS_PER_HOUR / usd_per_hour)

    def life_seconds(self, created_at: float) -> float | None:
        """From this age on, a sweep deletes the endpoint; None: it is kept. Times are epoch seconds."""
        limits = [] if self.expires_at is None else [self.expires_at - created_at]
        if self.paid_seconds is not None:
            limits.append(max(0, self.paid_seconds - NOTICE_SECONDS))
        return min(limits, default=None)

    def ends_at(self, created_at: float) -> float | None:
        seconds = self.life_seconds(created_at)
        return None if seconds is None else created_at + seconds

    def most_usd(self, created_at: float) -> Decimal | None:
        """The cost of the longest life; None if it has no end, or if the price is unknown."""
        seconds = self.life_seconds(created_at)
        if seconds is None or self.usd_per_hour is None:
            return None
        return cost_usd(Decimal(str(max(seconds, 0))) + NOTICE_SECONDS, self.instance_count, self.usd_per_hour)

    def end_reason(self, created_at: float) -> str:
        """Why a sweep deletes the endpoint."""
        paid = self.paid_seconds
        if self.max_usd is None or paid is None or paid - NOTICE_SECONDS > (self.life_seconds(created_at) or 0):
            return "expired"
        return f"the lab ended it before it could cost more than its max_usd of {exact_usd_text(self.max_usd)}"


def deployment_name(*, lab: str, suite_name: str, cell_id: str, unique: str) -> str:
    """A name that SageMaker accepts and that begins with the lab's prefix, to which the IAM roles are limited."""
    return f"{jobs_prefix(lab)}{suite_name[:15].rstrip('-')}-{cell_id}-{unique}"[:63].rstrip("-")


def deployment_document(deployment: ModelDeployment) -> dict[str, Any]:
    return {name: value for name, value in to_document(deployment).items() if value is not None}


def parse_deployment(document: Mapping[str, Any], *, lab: str) -> ModelDeployment:
    """Raises DocumentInvalid with every problem."""
    if excess := excess_of(document):
        raise DocumentInvalid([excess])
    try:
        found: ModelDeployment = strict_converter([Task]).structure(document, ModelDeployment)
    except (Unexpected, BaseValidationError, FieldProblems) as error:
        raise DocumentInvalid([*problems_of(error, "")]) from error
    problems = [*_problems(found, lab), *_amount_problems(found)]
    if problems:
        raise DocumentInvalid(problems)
    return found


def _problems(deployment: ModelDeployment, lab: str) -> Iterator[Problem]:
    served, count = ", ".join(SERVED_TASKS), deployment.instance_count
    rules = (
        ("name", NAME.fullmatch(deployment.name) and deployment.name.startswith(jobs_prefix(lab)),
         f"a name of up to 63 letters, digits and hyphens that begins with {jobs_prefix(lab)}"),
        ("task", deployment.task in SERVED_TASKS, f"one of {served}"),
        ("owner", OWNER.fullmatch(deployment.owner), OWNER_RULE),
        ("instance_type", deployment.instance_type.startswith(("ml.", "local.")),
         f"an instance type such as {SERVING_INSTANCE}"),
        ("usd_per_hour", (deployment.usd_per_hour or 0) >= 0, "a price of at least 0"),
        ("expires_at", 0 <= (deployment.expires_at or 0) < YEAR_3000, "a time before the year 3000"),
        ("instance_count", 1 <= count <= MOST_INSTANCES, f"1 to {MOST_INSTANCES} instances"),
    )  # fmt: skip
    for field, is_right, expected in rules:
        if not is_right:
            yield Problem(path=field, message=f"got {shown(getattr(deployment, field))}, expected {expected}")


def _amount_problems(deployment: ModelDeployment) -> Iterator[Problem]:
    paid, asked = deployment.paid_seconds, deployment.max_usd
    if asked is None:
        return
    if asked <= 0:
        yield Problem(path="max_usd", message=f"got {asked}, expected an amount above 0")
    elif paid is None or deployment.usd_per_hour is None:
        unknown = f"the price of {deployment.instance_type} is unknown, so no amount can be kept"
        yield Problem(path="max_usd", message=f"got {asked}, but {unknown}: leave it out; an expiry bounds the time")
    elif paid < LEAST_PAID_SECONDS:
        least = exact_usd_text(cost_usd(LEAST_PAID_SECONDS, deployment.instance_count, deployment.usd_per_hour))
        yield Problem(
            path="max_usd",
            message=f"got {asked}, which pays for {paid} s of {deployment.instance_count} × {deployment.instance_type};"
            f" expected at least {least}, which pays for {LEAST_PAID_SECONDS} s: up to {START_SECONDS} s until it"
            f" starts, {NOTICE_SECONDS} s until it has ended",
        )
