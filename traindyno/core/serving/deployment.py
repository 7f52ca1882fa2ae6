"""One deployment of a trained model: its document, and how long it may exist."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from math import floor
from typing import Any

from traindyno.core.costs.prices import SECONDS_PER_HOUR, cost_usd
from traindyno.core.costs.quantity_text import exact_usd_text
from traindyno.core.documents.problems import shown
from traindyno.core.documents.stored import from_document, to_document
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
# The next sweep comes within 5 minutes. 5 more are reserved until SageMaker has deleted what the
# sweep ends.
NOTICE_SECONDS = 600
LEAST_PAID_SECONDS = 1200
# The longest time from the record to the endpoint: the model is copied meanwhile.
CREATED_WITHIN_SECONDS = 900


class ModelNotServable(TraindynoError):
    """The run saved no model that the inference handler can serve, or the lab can't serve it
    there.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDeployment:
    """One deployment of a trained model.

    ``name`` is the name of the endpoint, its configuration and its model; ``job_name`` is the
    training job's.

    ``created_at`` is in epoch seconds. A price of None is unknown. The lab deletes the endpoint
    after ``hours``, and before it costs more than ``max_usd``; None is no such limit.
    """

    name: str
    execution_id: str
    run_id: str
    job_name: str
    owner: str
    instance_type: str
    created_at: float
    hours: float
    usd_per_hour: Decimal | None = None
    max_usd: Decimal | None = None

    @property
    def paid_seconds(self) -> int | None:
        """The whole seconds that ``max_usd`` pays for; None without it, or if the price is
        unknown.
        """
        return (
            floor(self.max_usd * SECONDS_PER_HOUR / self.usd_per_hour)
            if self.max_usd and self.usd_per_hour
            else None
        )

    @property
    def ends_at(self) -> float:
        """Time from which a sweep deletes the endpoint."""
        seconds = self.hours * SECONDS_PER_HOUR
        paid = self.paid_seconds
        return self.created_at + (
            seconds if paid is None else min(seconds, max(0, paid - NOTICE_SECONDS))
        )

    def usd_until(self, at: float) -> Decimal | None:
        """An upper bound of the cost since the creation; None if the price is unknown."""
        if self.usd_per_hour is None:
            return None
        return cost_usd(Decimal(str(max(at - self.created_at, 0))), 1, self.usd_per_hour)

    @property
    def most_usd(self) -> Decimal | None:
        """The cost of the longest life; None if the price is unknown."""
        return self.usd_until(self.ends_at + NOTICE_SECONDS)


def deployment_name(*, lab: str, suite_name: str, cell_id: str, unique: str) -> str:
    """A name that SageMaker accepts and that begins with the lab's prefix, to which the IAM roles
    are limited.
    """
    return f"{jobs_prefix(lab)}{suite_name[:15].rstrip('-')}-{cell_id}-{unique}"[:63].rstrip("-")


def deployment_document(deployment: ModelDeployment) -> dict[str, Any]:
    return {name: value for name, value in to_document(deployment).items() if value is not None}


def parse_deployment(document: Mapping[str, Any], *, lab: str) -> ModelDeployment:
    """Read a deployment. Raises DocumentInvalid with every problem."""
    deployment = from_document(document, ModelDeployment)
    price = deployment.usd_per_hour
    hours = deployment.hours
    amount = f"no amount, as the price of {deployment.instance_type} is unknown"
    if price:
        least = exact_usd_text(cost_usd(LEAST_PAID_SECONDS, 1, price))
        amount = (
            f"at least {least}, which pays for the {LEAST_PAID_SECONDS} s from the start to the end"
        )
    rules = (
        (
            "name",
            NAME.fullmatch(deployment.name) and deployment.name.startswith(jobs_prefix(lab)),
            f"a name of up to 63 letters, digits and hyphens that begins with {jobs_prefix(lab)}",
        ),
        ("hours", 0 < hours <= MOST_HOURS, f"up to {MOST_HOURS} hours"),
        (
            "max_usd",
            deployment.max_usd is None or (deployment.paid_seconds or 0) >= LEAST_PAID_SECONDS,
            amount,
        ),
    )
    problems = [
        Problem(path=field, message=f"got {shown(getattr(deployment, field))}, expected {expected}")
        for field, is_right, expected in rules
        if not is_right
    ]
    if problems:
        raise DocumentInvalid(problems)
    return deployment
