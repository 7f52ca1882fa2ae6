"""The executions of the local cloud that run now, and those that failed when it ended."""

from collections.abc import Callable, Iterator

from botocore.exceptions import BotoCoreError, ClientError

from localcloud import cloud, daemons
from localcloud.aws_client import local_client
from localcloud.environment import local_environment, read_access_key
from localcloud.home import Home, HomeUnusable, Ports
from traindyno.aws.deployment import LabNotDeployed, find_deployment
from traindyno.aws.executions import Executions
from traindyno.core.lab_names import DEFAULT_LAB

# MiniStack gives this error to the executions that it finds running when it starts.
ENDED_BY_RESTART = "States.ServiceRestart"
LATEST = 100
# A MiniStack that hangs must be stopped too, and soon.
QUICK = {"connect_timeout": 1, "read_timeout": 3, "retries": {"total_max_attempts": 1}}


def running_executions(home: Home, *, tell: Callable[[str], None]) -> tuple[str, ...]:
    """The executions that run; none if MiniStack does not run or does not answer."""
    if not daemons.running(home, cloud.MINISTACK):
        return ()
    try:
        return tuple(_machine(home).list_running())
    except LabNotDeployed:
        return ()
    except (BotoCoreError, ClientError, HomeUnusable) as error:
        tell(f"whether executions are running is unknown: {error}")
        return ()


def failed_by_restart(home: Home, *, since: float) -> Iterator[str]:
    """The executions that ran when MiniStack ended, and failed when it started again after ``since``."""
    machine = _machine(home)
    for each in machine.list_latest(LATEST):
        # Step Functions gives whole milliseconds.
        is_new = each.ended_at is not None and each.ended_at >= since - 1
        if is_new and machine.describe(each.execution_id).error == ENDED_BY_RESTART:
            yield each.execution_id


def _machine(home: Home) -> Executions:
    ministack, sagemaker = (daemons.running(home, part) for part in (cloud.MINISTACK, cloud.SAGEMAKER))
    if ministack is None:
        raise daemons.LocalCloudFailed(f"MiniStack of the local cloud in {home.folder} has ended")
    ports = Ports(aws=ministack.port, sagemaker=sagemaker.port if sagemaker else ministack.port)
    settings = local_environment(ports, read_access_key(home))
    found = find_deployment(local_client(settings, "cloudformation", **QUICK), DEFAULT_LAB)
    return Executions(local_client(settings, "stepfunctions", **QUICK), found.state_machine_arn)
