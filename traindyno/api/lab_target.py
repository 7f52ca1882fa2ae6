"""The lab that a call uses: which one, and what it is once it is found in its account."""

import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches

from traindyno.api.checkout import require_checkout
from traindyno.aws import clients
from traindyno.aws.account import account_of
from traindyno.aws.deployment import Deployment, find_deployment
from traindyno.aws.executions import Execution, Executions, ExecutionUnknown
from traindyno.core.documents.problems import refusal, shown
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.features import FEATURES
from traindyno.lab.environment import BucketEnvironment
from traindyno.lab.feature import Feature
from traindyno.lab.services import LabServices, open_services
from traindyno.store.results_bucket import ResultsBucket

# How many of the latest executions are compared with an unknown name, and how many of them are
# shown.
SEARCHED_EXECUTIONS = 200
SHOWN_EXECUTIONS = 5


class StillRunning(TraindynoError):
    """What shall go on has not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabTarget:
    """The lab that a command uses: the local cloud's, or one in an AWS account."""

    is_local: bool
    deployment: Deployment
    executions: Executions
    services: LabServices
    features: Sequence[Feature]
    #: The options of a region and a profile that were chosen.
    account: str = ""

    @property
    def results(self) -> ResultsBucket:
        return self.services.bucket

    @property
    def option(self) -> str:
        """The options that select the same lab in another command."""
        if self.is_local:
            return " --local"
        lab = "" if self.deployment.lab == DEFAULT_LAB else f" --lab {self.deployment.lab}"
        return f"{lab}{self.account}"

    def describe(self, execution_id: str) -> Execution:
        """Raises ExecutionUnknown, which names the executions that were probably meant, and the
        latest ones.
        """
        try:
            return self.executions.describe(execution_id)
        except ExecutionUnknown as error:
            names = [
                execution.execution_id
                for execution in self.executions.list_latest(SEARCHED_EXECUTIONS)
            ]
            more = ", …" if len(names) > SHOWN_EXECUTIONS else ""
            latest = f"{', '.join(names[:SHOWN_EXECUTIONS])}{more}"
            expected = (
                f"one of the executions that `traindyno list{self.option}` shows: "
                f"{latest or 'there are none'}"
            )
            problem = f"lab {self.deployment.lab} has no execution {shown(execution_id)}"
            meant = get_close_matches(execution_id, names, n=3, cutoff=0.7)
            raise ExecutionUnknown(refusal(problem, expected, meant)) from error

    def require_execution(self, execution_id: str) -> None:
        """Raises ExecutionUnknown.

        What the lab keeps of an execution outlives that in Step Functions.
        """
        if self.services.executions.find(execution_id) is None:
            self.describe(execution_id)

    def require_ended(self, execution_id: str) -> None:
        """Raises StillRunning."""
        if self.describe(execution_id).is_running:
            raise StillRunning(
                f"{execution_id} is still running; follow it with: traindyno watch "
                f"{execution_id}{self.option}"
            )
        if any(self.services.attempts.list_open(execution_id)):
            raise StillRunning(
                f"a job of {execution_id} has not ended yet; stop waits for it: traindyno stop "
                f"{execution_id}{self.option}"
            )

    def find_stall(self) -> str | None:
        """Why the local cloud can't make progress; None if it works, and for a lab on AWS."""
        if not self.is_local:
            return None
        from localcloud import cloud, home  # noqa: PLC0415  (the wheel lacks it)

        return cloud.find_stall(home.Home.from_environment())

    def find_ended(self) -> str | None:
        """The part of the local cloud that has ended; None if both run, and for a lab on AWS."""
        if not self.is_local:
            return None
        from localcloud import cloud, home  # noqa: PLC0415  (the wheel lacks it)

        return cloud.find_ended(home.Home.from_environment())


class LabChoiceRefused(TraindynoError):
    """The lab of the local cloud was chosen together with one in an AWS account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """The lab of the local cloud on this machine, or the one of this name in an AWS account.

    ``region`` and ``profile`` are by default the ones of your AWS settings.
    """

    local: bool = False
    name: str = DEFAULT_LAB
    region: str | None = None
    profile: str | None = None

    def __post_init__(self) -> None:
        """Raises LabChoiceRefused."""
        of_aws = {"name": self.name != DEFAULT_LAB, "region": self.region, "profile": self.profile}
        given = [name for name, value in of_aws.items() if value]
        if self.local and given:
            raise LabChoiceRefused(
                f"got local=True with {' and '.join(given)}, but the local cloud has one lab, "
                f"{DEFAULT_LAB}, which is in no AWS account: expected local=True alone, or name, "
                "region and profile without it"
            )

    def environment(self) -> dict[str, str]:
        """The environment variables of a process that uses the lab's account."""
        if self.local:
            require_checkout("the local cloud")
            from localcloud import cloud, home  # noqa: PLC0415  (the wheel lacks it)

            return cloud.environment_of(home.Home.from_environment(), needs_service=False)
        environment = dict(os.environ)
        if self.profile:
            environment["AWS_PROFILE"] = self.profile
        if self.region:
            environment["AWS_REGION"] = environment["AWS_DEFAULT_REGION"] = self.region
        return environment

    def find(self) -> LabTarget:
        """The lab in the account of this process's environment. Raises LabNotDeployed."""
        deployment = find_deployment(clients.cloudformation(), self.name)
        environment = BucketEnvironment(
            lab=deployment.lab, table=deployment.table, bucket=deployment.bucket
        )
        return LabTarget(
            is_local=self.local,
            deployment=deployment,
            executions=Executions(clients.stepfunctions(), deployment.state_machine_arn),
            services=open_services(environment),
            features=FEATURES,
            account="".join(
                f" --{name} {shlex.quote(value)}"
                for name in ("region", "profile")
                if (value := getattr(self, name))
            ),
        )

    @contextmanager
    def opened(self) -> Iterator[LabTarget]:
        """The lab, for the time of the block; then the process has the account again that it
        had.
        """
        with account_of(self.environment(), self.profile):
            yield self.find()


def require_local_service() -> None:
    """Raises LocalCloudFailed unless the local cloud runs with its SageMaker service, which has
    quotas and prices.
    """
    from localcloud import cloud, home  # noqa: PLC0415  (the wheel lacks it)

    cloud.require_ports(home.Home.from_environment())
