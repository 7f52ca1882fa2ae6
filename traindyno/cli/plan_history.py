"""What a lab has of earlier runs of a suite's cells, for a plan; a plan does without it, and says why."""

from dataclasses import dataclass, field
from pathlib import Path

from botocore.exceptions import ClientError

from traindyno.aws import clients
from traindyno.aws.client_errors import error_code, is_access_denied
from traindyno.aws.deployment import LabNotDeployed, find_deployment
from traindyno.cli.output import tell
from traindyno.cli.sample_data import SampleUnknown
from traindyno.cli.staging import Stage, StagingRefused
from traindyno.cli.suite_loading import LoadedSuite
from traindyno.core.planning.history import Histories
from traindyno.core.suite.suite_file import parse_suite
from traindyno.store.past_runs import read_histories
from traindyno.store.suite_rows import SuiteRows


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundHistories:
    """``why_none``: there was nowhere to look, or no right to."""

    by_cell: Histories = field(default_factory=dict)
    why_none: str | None = None


def find_histories(loaded: LoadedSuite, *, beside: Path, lab: str) -> FoundHistories:
    """Reads the lab's table; sends nothing."""
    try:
        deployment = find_deployment(clients.cloudformation(), lab)
        stage = Stage(beside=beside, s3=clients.s3(), bucket=deployment.bucket, tell=tell, sends=False)
        suite = parse_suite(stage.stage_suite(loaded.document))
        return FoundHistories(by_cell=read_histories(suite, SuiteRows(clients.table(deployment.table))))
    except (LabNotDeployed, StagingRefused, SampleUnknown) as error:
        return FoundHistories(why_none=str(error))
    except ClientError as error:
        if is_access_denied(error):
            return FoundHistories(why_none=f"{error_code(error)} in {error.operation_name} of lab {lab}")
        raise
