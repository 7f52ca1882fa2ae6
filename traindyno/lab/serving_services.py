"""The services that deployments of models call, bound to the lab's table and bucket."""

from collections.abc import Callable
from functools import cache, cached_property

from traindyno.aws import clients
from traindyno.aws.endpoints import Endpoints, Invocations
from traindyno.aws.log_tail import LogTail
from traindyno.aws.objects import Objects
from traindyno.aws.table import Table
from traindyno.aws.task_answers import TaskAnswers
from traindyno.lab.environment import BucketEnvironment
from traindyno.store.model_deployments import DeploymentRows
from traindyno.store.results_bucket import ResultsBucket


class ServingServices:
    """Each client but those of the table and the bucket is made at first use."""

    def __init__(
        self,
        *,
        table: Table,
        objects: Objects,
        endpoints: Callable[[], Endpoints],
        invocations: Callable[[], Invocations],
        answers: Callable[[], TaskAnswers],
        log_tail: Callable[[], LogTail],
    ) -> None:
        self.deployments = DeploymentRows(table)
        self.bucket = ResultsBucket(objects)
        self._endpoints, self._invocations, self._answers, self._log_tail = endpoints, invocations, answers, log_tail

    @cached_property
    def endpoints(self) -> Endpoints:
        return self._endpoints()

    @cached_property
    def invocations(self) -> Invocations:
        return self._invocations()

    @cached_property
    def answers(self) -> TaskAnswers:
        return self._answers()

    @cached_property
    def log_tail(self) -> LogTail:
        return self._log_tail()


def open_serving_services(environment: BucketEnvironment) -> ServingServices:
    return ServingServices(
        table=Table(clients.table(environment.table)),
        objects=Objects(clients.s3(), environment.bucket),
        endpoints=lambda: Endpoints(clients.sagemaker()),
        invocations=lambda: Invocations(clients.sagemaker_runtime()),
        answers=lambda: TaskAnswers(clients.stepfunctions()),
        log_tail=lambda: LogTail(clients.logs()),
    )


@cache
def connect_serving(environment: BucketEnvironment) -> ServingServices:
    """The same for every call of a warm function."""
    return open_serving_services(environment)
