"""What a job's code is told: its own hyperparameters, where it lies and how to launch it, encoded as the SDK does."""

import json
from typing import Any

from traindyno.core.errors import TraindynoError
from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.suite.job_limits_check import MODEL_PARALLEL_PARAMETERS
from traindyno.core.suite.suite import Run, Suite, Task
from traindyno.core.suite.suite_file import (
    measurement_document,
    settings_document,
    tokens_document,
    workload_document,
)
from traindyno.sagemaker.job_settings import JobSettings
from traindyno.sagemaker.launcher import launcher_hyperparameters, select_launcher

ENTRY_POINT = "traindyno_train.py"
LOG_LEVEL = 20


class SourceMissing(TraindynoError):
    """No code was staged in S3 for the job to run."""


def build_hyperparameters(
    run: Run, suite: Suite, *, image_uri: str, job_name: str, settings: JobSettings
) -> dict[str, str]:
    own = _own_hyperparameters(run, suite)
    instance_type = find_instance_type(run.cell.settings.instance)
    assert instance_type is not None, "a parsed suite names known instance types only"
    launcher = select_launcher(run.cell.settings, instance_type, image_uri, own)
    values = {
        **own,
        "sagemaker_submit_directory": _source(suite, settings),
        "sagemaker_program": suite.workload.entry_point or ENTRY_POINT,
        "sagemaker_container_log_level": LOG_LEVEL,
        "sagemaker_job_name": job_name,
        "sagemaker_region": settings.region,
        **launcher_hyperparameters(launcher, instance_type, own),
    }
    encoded = {name: json.dumps(value) for name, value in values.items()}
    if MODEL_PARALLEL_PARAMETERS in own:
        encoded[MODEL_PARALLEL_PARAMETERS] = str(own[MODEL_PARALLEL_PARAMETERS])
    return encoded


def _own_hyperparameters(run: Run, suite: Suite) -> dict[str, Any]:
    if suite.workload.task is Task.SCRIPT:
        return {**suite.workload.hyperparameters, **run.cell.hyperparameters}
    return {
        "run_id": run.run_id,
        "workload": workload_document(suite.workload),
        "settings": settings_document(run.cell.settings),
        "measurement": measurement_document(suite.measurement),
        **({"tokens": tokens_document(run.tokens)} if run.tokens else {}),
    }


def _source(suite: Suite, settings: JobSettings) -> str:
    source = suite.workload.source if suite.workload.task is Task.SCRIPT else settings.source_s3_uri
    if source is None or not source.startswith("s3://"):
        found = source or "nothing"
        raise SourceMissing(f"suite {suite.name}: expected its code as s3://…/sourcedir.tar.gz, found {found}")
    return source
