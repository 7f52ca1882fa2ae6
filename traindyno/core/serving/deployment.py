"""One deployment of a trained model: its document, and how long it may exist."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import floor
from typing import Any

from cattrs.errors import BaseValidationError

from traindyno.core.costs.prices import SECONDS_PER_HOUR, cost_usd
from traindyno.core.costs.quantity_text import exact_usd_text
from traindyno.core.documents.converter import strict_converter
from traindyno.core.documents.extent import excess_of
from traindyno.core.documents.problems import FieldProblems, Unexpected, problems_of, shown
from traindyno.core.documents.stored import to_document
from traindyno.core.errors import DocumentInvalid, Problem, TraindynoError
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.suite.choices import Task

# SageMaker's pattern for the names of endpoints and models
NAME = re.compile(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}")
IMAGE_REPOSITORY = "pytorch-inference"
# The type of an endpoint if the user chooses none, as in the post about Trainium
SERVING_INSTANCE = "ml.c5.xlarge"
MOST_HOURS = 24 * 366
SERVED_TASKS = (Task.CAUSAL_LM, Task.MASKED_LM, Task.SEQUENCE_CLASSIFICATION)
# The next sweep comes within 5 minutes. 5 more are reserved until SageMaker has deleted what the sweep ends.
NOTICE_SECONDS = 600
LEAST_PAID_SECONDS = 1200


class ModelNotServable(TraindynoError):
    """The run saved no model that the inference handler can serve, or the lab can't serve it there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDeployment:
    """``name`` is that of the endpoint, its configuration and its model; ``job_name`` that of the training job.

    ``created_at``: epoch seconds. A price of None is unknown. The lab deletes the endpoint after ``hours``, and before
    it costs more than ``max_usd``; None is no such limit.
    """

    name: str
    suite_name: str
    execution_id: str
    run_id: str
    job_name: str
    task: Task
    owner: str
    instance_type: str
    created_at: float
    usd_per_hour: Decimal | None = None
    price_source: str | None = None
    hours: float | None = None
    max_usd: Decimal | None = None

    @property
    def paid_seconds(self) -> int | None:
        """The whole seconds that ``max_usd`` pays for; None without it, or if the price is unknown."""
        return (
            floor(self.max_usd * SECONDS_PER_HOUR / self.usd_per_hour) if self.max_usd and self.usd_per_hour else None
        )

    @property
    def ends_at(self) -> float | None:
        """From then on a sweep deletes the endpoint; None: it is kept."""
        seconds = [] if self.hours is None else [self.hours * SECONDS_PER_HOUR]
        if self.paid_seconds is not None:
            seconds.append(max(0, self.paid_seconds - NOTICE_SECONDS))
        return self.created_at + min(seconds) if seconds else None

    @property
    def most_usd(self) -> Decimal | None:
        """The cost of the longest life; None if it has no end, or if the price is unknown."""
        return None if self.ends_at is None else self.usd_until(self.ends_at + NOTICE_SECONDS)

    def usd_until(self, now: float) -> Decimal | None:
        """An upper bound of the cost, from the creation; None if the price is unknown."""
        if self.usd_per_hour is None:
            return None
        return cost_usd(Decimal(str(max(now - self.created_at, 0))), 1, self.usd_per_hour)


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
    if problems := [*_problems(found, lab)]:
        raise DocumentInvalid(problems)
    return found


def _problems(deployment: ModelDeployment, lab: str) -> Iterator[Problem]:
    hours, paid, price = deployment.hours, deployment.paid_seconds, deployment.usd_per_hour
    amount = f"no amount, as the price of {deployment.instance_type} is unknown"
    if price:
        least = exact_usd_text(cost_usd(LEAST_PAID_SECONDS, 1, price))
        amount = f"at least {least}, which pays for the {LEAST_PAID_SECONDS} s from the start to the end"
    rules = (
        ("name", NAME.fullmatch(deployment.name) and deployment.name.startswith(jobs_prefix(lab)),
         f"a name of up to 63 letters, digits and hyphens that begins with {jobs_prefix(lab)}"),
        ("task", deployment.task in SERVED_TASKS, f"one of {', '.join(SERVED_TASKS)}"),
        ("instance_type", deployment.instance_type.startswith(("ml.", "local.")),
         f"an instance type such as {SERVING_INSTANCE}"),
        ("hours", hours is None or 0 < hours <= MOST_HOURS, f"up to {MOST_HOURS} hours, or none"),
        ("usd_per_hour", price is None or price >= 0, "a price of at least 0"),
        ("max_usd", deployment.max_usd is None or (paid or 0) >= LEAST_PAID_SECONDS, amount),
    )  # fmt: skip
    for field, is_right, expected in rules:
        if not is_right:
            yield Problem(path=field, message=f"got {shown(getattr(deployment, field))}, expected {expected}")
