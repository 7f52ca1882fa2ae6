"""Start a suite as an execution of a lab."""

import secrets
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from pathlib import Path

from traindyno.api.lab_target import LabTarget
from traindyno.api.staging import StagingArea
from traindyno.api.suite_loading import Suite
from traindyno.aws import clients
from traindyno.aws.executions import check_execution_name


def start_suite(
    suite: Suite,
    target: LabTarget,
    *,
    files: Sequence[str],
    name: str | None,
    allowed: Collection[Path],
    say: Callable[[str], None],
) -> str:
    """Uploads the local files of the suite and starts the execution, whose name it returns.

    ``files``: its ``file_lines``, which are found before the lab is. Raises ExecutionNameRefused.
    """
    made = f"{suite.suite.name}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    execution_id = made if name is None else name
    check_execution_name(execution_id)
    for line in files:
        say(line)
    stage = StagingArea(
        beside=suite.folder, s3=clients.s3(), bucket=target.deployment.bucket, tell=say, allowed=allowed
    )
    document = stage.stage_suite(suite.document)
    target.executions.start(execution_id, document)
    return execution_id
