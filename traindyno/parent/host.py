"""This host in the job, and the folders that its runs use."""

import json
import os
from pathlib import Path
from typing import Any, Dict, Mapping, NamedTuple, Optional, Tuple

from traindyno.core.jobs.journal_format import (
    CONTAINER_FOLDER,
    ENDED,
    FOLDER_VARIABLE,
    JOURNAL,
    LOGS,
    OPT_ML_VARIABLE,
    SHARED_MEMORY_VARIABLE,
    STATE,
    STEP_LOG,
)

CONTAINER_ROOT = "/opt/ml"
SHARED_MEMORY = "/dev/shm"  # noqa: S108


class Host(NamedTuple):
    """This host of the job.

    ``folder`` is the folder that SageMaker copies to S3 while the job runs. ``environment`` is the
    parent's own. A run without a result writes to ``aside`` instead.
    """

    name: str
    hosts: Tuple[str, ...]
    job_name: str
    folder: Path
    environment: Dict[str, str]
    aside: Optional[Path] = None

    @property
    def rank(self) -> int:
        return self.hosts.index(self.name)

    @property
    def mark(self) -> str:
        """In the environment of each process that this parent starts.

        Another service on this machine may have a job of this name, in another folder.
        """
        return "{}/{}:{}".format(self.job_name, self.name, self.folder)

    @property
    def journal(self) -> Path:
        return self.folder / JOURNAL / self.job_name / "{}.jsonl".format(self.name)

    def end_file(self, run_id: str) -> Path:
        return self.folder / run_id / ENDED / self.job_name / "{}.json".format(self.name)

    def step_log(self, run_id: str) -> Path:
        """The step log adds the job's name."""
        return (self.aside or self.folder) / run_id / STEP_LOG

    def state(self, run_id: str) -> Path:
        return (self.aside or self.folder) / run_id / STATE

    def folder_of(self, variable: str, otherwise: str) -> Path:
        return Path(
            self.environment.get(variable)
            or self.localised("{}/{}".format(CONTAINER_ROOT, otherwise))
        )

    @property
    def failure(self) -> Path:
        return self.folder_of("SM_OUTPUT_DIR", "output") / "failure"

    def output(self, run_id: str) -> Path:
        return self.folder_of("SM_OUTPUT_DATA_DIR", "output/data") / run_id

    def model(self, run_id: str) -> Path:
        return self.folder_of("SM_MODEL_DIR", "model") / run_id

    def channel(self, name: str) -> Path:
        return self.folder_of("SM_INPUT_DIR", "input") / "data" / name

    @property
    def shared_memory(self) -> Optional[Path]:
        """None if others use the machine too."""
        own = None if OPT_ML_VARIABLE in self.environment else SHARED_MEMORY
        named = self.environment.get(SHARED_MEMORY_VARIABLE, own)
        return Path(named) if named else None

    @property
    def is_alone(self) -> bool:
        """Whether only this job uses the machine, so that what it finds there is its own."""
        return self.shared_memory is not None

    def log(self, run_id: str) -> Path:
        return self.output(LOGS) / "{}.{}.log".format(run_id, self.name)

    def localised(self, value: Any) -> Any:
        """The value with this host's paths instead of container paths.

        Paths in lists and mappings are replaced too.
        """
        root = self.environment.get(OPT_ML_VARIABLE)
        if not root:
            return value
        if isinstance(value, str):
            return _localised_text(value, root)
        if isinstance(value, dict):
            return {name: self.localised(part) for name, part in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.localised(element) for element in value]
        return value


def this_host(environment: Mapping[str, str] = os.environ) -> Host:
    name = environment.get("SM_CURRENT_HOST", "algo-1")
    hosts = tuple(json.loads(environment.get("SM_HOSTS", json.dumps([name]))))
    job_name = environment.get("TRAINING_JOB_NAME", "job")
    host = Host(name, hosts, job_name, Path(), dict(environment))
    return host._replace(
        folder=Path(host.localised(environment.get(FOLDER_VARIABLE, CONTAINER_FOLDER)))
    )


def _localised_text(text: str, root: str) -> str:
    for lead in ("", "file://"):
        below = text[len(lead) + len(CONTAINER_ROOT) :]
        if text.startswith(lead + CONTAINER_ROOT) and (not below or below.startswith("/")):
            return lead + root + below if ".." not in below.split("/") else text
    return text
