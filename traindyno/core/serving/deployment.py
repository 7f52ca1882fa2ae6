"""One deployment of a trained model."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.suite.choices import Task

NAME_CHARACTERS = 57  # the suffix of its check job makes it SageMaker's 63
CHECK_SUFFIX = "-check"
SUITE_NAME_CHARACTERS = 15
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
    ``expires_at``, epoch seconds: when an endpoint is deleted; None keeps it. A transform job is stopped then.
    ``max_usd``: it is ended before it costs more; None is no such limit.
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
    max_usd: Decimal | None = None

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
