"""What training jobs are submitted for: a run, several runs that share a job, or a preparation."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from traindyno.core.documents.plain import plain_values
from traindyno.core.jobs.journal_format import STEP_LOG
from traindyno.core.run.settings import Settings
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.s3_keys import checkpoints_prefix, shared_run_prefix
from traindyno.core.suite.suite import Run
from traindyno.core.suite.suite_file import suite_converter


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Runs that one training job carries, one after another; a parent process starts them.

    All its attempts have its id; a later one carries the runs that have not ended. A run with a job
    of its own is an owner of attempts itself.
    """

    execution_id: str
    #: Unique within the execution, also among the ids of its runs.
    job_id: str
    #: Runs in the order in which they run.
    runs: tuple[Run, ...]

    @property
    def settings(self) -> Settings:
        """Settings of the first run; all runs have the same instances."""
        return self.runs[0].cell.settings

    @property
    def instance_count(self) -> int:
        return self.settings.instance_count

    @property
    def trial(self) -> int:
        return min(run.trial for run in self.runs)

    @property
    def place(self) -> int:
        """The first of its runs' places in the random order of their round."""
        return min(run.place or 0 for run in self.runs)

    @property
    def is_shared(self) -> bool:
        """Whether a parent process starts the runs; a single run is started by the container's own
        launcher, unless its batch is searched or a shell would change its arguments.
        """
        return len(self.runs) > 1 or self.runs[0].job_id is not None


# An attempt is submitted for one of these.
AttemptOwner = Run | Job | DataPreparation


def runs_of(owner: AttemptOwner) -> tuple[Run, ...]:
    """The runs that the owner's training jobs carry."""
    match owner:
        case Run():
            return (owner,)
        case Job():
            return owner.runs
        case DataPreparation():
            return ()


def step_logs_prefix(logged: Run | DataPreparation) -> str:
    """The prefix of the step logs of all its attempts: a folder for each job name."""
    if isinstance(logged, Run) and logged.job_id is not None:
        folder = shared_run_prefix(logged.execution_id, logged.job_id, logged.run_id)
    else:
        folder = checkpoints_prefix(logged.execution_id, owner_id(logged))
    return f"{folder}{STEP_LOG}/"


def owner_id(owner: AttemptOwner) -> str:
    """Id of an owner of attempts, unique within the execution."""
    match owner:
        case Run():
            return owner.run_id
        case Job():
            return owner.job_id
        case DataPreparation():
            return owner.preparation_id


# Each in the state machine: ``{"run": …}``, ``{"job": …}`` or ``{"preparation": …}``.
KINDS: Mapping[type[AttemptOwner], str] = {Run: "run", Job: "job", DataPreparation: "preparation"}


def owner_text(owner: AttemptOwner) -> str:
    """Kind and id of an owner, for messages."""
    return f"{KINDS[type(owner)]} {owner_id(owner)}"


def not_started_text(owner: AttemptOwner, reason: str) -> str:
    return f"{owner_text(owner)} was not started: {reason}"


def owner_document(owner: AttemptOwner) -> dict[str, Any]:
    return {KINDS[type(owner)]: plain_values(owner)}


def parse_owner(document: Mapping[str, Any]) -> AttemptOwner:
    kind = next((kind for kind, name in KINDS.items() if name in document), Run)
    return suite_converter().structure(document[KINDS[kind]], kind)
