"""The executions of the local cloud: those that run now, and those that a restart has ended."""

import time
from collections.abc import Callable, Iterator

from botocore.exceptions import BotoCoreError, ClientError

from localcloud import cloud, daemons
from localcloud.aws_client import local_client
from localcloud.credentials import read_access_key
from localcloud.environment import local_environment
from localcloud.home import Home, HomeUnusable, Ports
from traindyno.api.lab_target import LabTarget
from traindyno.aws.deployment import LabNotDeployed, find_deployment
from traindyno.aws.executions import Execution, Executions, ExecutionUnknown
from traindyno.core.costs.quantity_text import usd_text
from traindyno.core.errors import TraindynoError
from traindyno.core.lab_names import DEFAULT_LAB
from traindyno.lab.rebuild_books import Rebuilt, rebuild_books

# MiniStack gives this error to the executions that it finds running when it starts.
ENDED_BY_RESTART = "States.ServiceRestart"
LATEST = 100
# A MiniStack that hangs must be stopped too, and soon.
QUICK = {"connect_timeout": 1, "read_timeout": 3, "retries": {"total_max_attempts": 1}}


def running_executions(home: Home, *, tell: Callable[[str], None]) -> tuple[str, ...]:
    """The executions of suites and deployments that run; none if MiniStack does not run or does not answer."""
    ministack, sagemaker = (daemons.running(home, part) for part in (cloud.MINISTACK, cloud.SAGEMAKER))
    if ministack is None:
        return ()
    ports = Ports(aws=ministack.port, sagemaker=sagemaker.port if sagemaker else ministack.port)
    try:
        settings = local_environment(ports, read_access_key(home))
    except HomeUnusable as error:
        tell(f"whether executions are running is unknown: {error}")
        return ()
    try:
        found = find_deployment(local_client(settings, "cloudformation", **QUICK), DEFAULT_LAB)
        stepfunctions = local_client(settings, "stepfunctions", **QUICK)
        machines = (found.state_machine_arn, found.deployments_arn)
        return tuple(name for arn in machines for name in Executions(stepfunctions, arn).list_running())
    except LabNotDeployed:
        return ()
    except (BotoCoreError, ClientError) as error:
        tell(f"whether executions are running is unknown, because MiniStack does not answer: {error}")
        return ()


def settle_restart(target: LabTarget, deploying: Executions, *, since: float, tell: Callable[[str], None]) -> bool:
    """Settle what ended with the MiniStack before, from ``since`` on, and tell it. ``deploying``: of models.

    False if it failed: a later try goes on.
    """
    try:
        rebuilt = rebuild_books(
            lab=target.deployment.lab,
            services=target.services,
            executions=target.executions,
            now=time.time,
            sleep=time.sleep,
        )
        _tell_settled(rebuilt, target, deploying, since=since, tell=tell)
    except (TraindynoError, BotoCoreError, ClientError) as error:
        tell(f"what ended with the MiniStack before is not settled: {error}; try again with: traindyno local up")
        return False
    return True


def _tell_settled(
    rebuilt: Rebuilt, target: LabTarget, deploying: Executions, *, since: float, tell: Callable[[str], None]
) -> None:
    ended = [each.execution_id for each in _ended_by_restart(target.executions, since)]
    ended += [name for name in rebuilt.attempts if name not in ended and _is_forgotten(target.executions, name)]
    for name in dict.fromkeys((*ended, *rebuilt.attempts)):
        tell(_settled_text(name, target, is_ended=name in ended, restored=rebuilt.attempts.get(name, 0)))
    for each in _ended_by_restart(deploying, since):
        tell(f"deployment {each.execution_id} was running and has ended; start it again with: traindyno deploy")
    if rebuilt.unclaimed:
        tell(
            f"{len(rebuilt.unclaimed)} jobs were stopped, and no receipt has them, because the documents of their "
            f"executions are gone: {', '.join(rebuilt.unclaimed)}"
        )
    if rebuilt.stopping:
        tell(f"{len(rebuilt.stopping)} jobs are still stopping, and are billed until they end")


def _ended_by_restart(executions: Executions, since: float) -> Iterator[Execution]:
    for each in executions.list_latest(LATEST):
        # Step Functions gives whole milliseconds.
        if each.ended_at is not None and each.ended_at >= since - 1:
            described = executions.describe(each.execution_id)
            if described.error == ENDED_BY_RESTART:
                yield described


def _is_forgotten(executions: Executions, name: str) -> bool:
    """Whether the last save of MiniStack was before the execution's start."""
    try:
        executions.describe(name)
    except ExecutionUnknown:
        return True
    return False


def _settled_text(name: str, target: LabTarget, *, is_ended: bool, restored: int) -> str:
    row = target.services.executions.find(name)
    told = ["was running and has ended"] if is_ended else []
    if restored:
        told.append(f"{restored} of its attempts had lost their rows, which were written again from the jobs")
    told.append(f"it has spent {usd_text(target.services.spending.read(name).spent_usd)}")
    if is_ended:
        told.append(f"start it again with: traindyno run {row.suite_name if row else 'SUITE'}.yaml --local")
    return f"execution {name}: {'; '.join(told)}"
