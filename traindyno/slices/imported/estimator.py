"""An estimator of the SageMaker SDK 2 as the request that its ``fit`` would send."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3

from traindyno.core.instances.instance_types import find_instance_type
from traindyno.core.s3_keys import is_s3_uri
from traindyno.core.suite.checks.combinations import SMDDP_FAMILIES
from traindyno.core.suite.checks.job_limits_check import SMDDP_OPTIONS
from traindyno.slices.imported.job import JobNotImportable
from traindyno.slices.imported.request_differences import UNKNOWN_LAB
from traindyno.slices.imported.suite_of_job import Decisions, ImportedSuite, import_job

SMDDP_FLAG = "sagemaker_distributed_dataparallel_enabled"
DDP_FLAG = "sagemaker_pytorch_ddp_enabled"
#: Address at which the code of this machine counts as uploaded.
UPLOADED = "s3://uploaded/sourcedir.tar.gz"


class Recorded(Exception):
    """Ends the SDK's call with the request that it was about to send."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request


def from_estimator(
    estimator: Any, decisions: Decisions | None = None, *, inputs: Any = None
) -> ImportedSuite:
    """The suite whose base cell is the job of ``estimator.fit(inputs)``.

    A copy of the estimator calls the SDK in a session without credentials, whose request is
    recorded: nothing is sent or uploaded, and the estimator is not changed. Raises
    JobNotImportable.
    """
    job, source = record(estimator, inputs)
    job, left_out = _as_asked(job)
    imported = import_job(job, decisions or Decisions())
    document = dict(imported.document)
    if source is not None:
        document["workload"] = {**document["workload"], "source": source}
    return replace(imported, document=document, left_out={**imported.left_out, **left_out})


def _as_asked(job: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The job with DDP where the SDK wrote SMDDP, which doesn't run on its instance type.

    Since 2.221.1 the SDK sends ``pytorchddp`` as SMDDP.
    """
    texts = dict(job["HyperParameters"])
    kind = find_instance_type(str(job["ResourceConfig"].get("InstanceType")))
    if SMDDP_FLAG not in texts or kind is None or kind.family in SMDDP_FAMILIES:
        return job, {}
    texts[DDP_FLAG] = texts.pop(SMDDP_FLAG)
    texts.pop(SMDDP_OPTIONS, None)
    reason = f"the SDK sends pytorchddp as SMDDP, which does not run on {kind.name}; ddp does"
    return {**job, "HyperParameters": texts}, {"distribution.smdistributed": reason}


def record(estimator: Any, inputs: Any) -> tuple[Mapping[str, Any], str | None]:
    """The request, and the folder of this machine that has the code; None for code in S3."""
    try:
        from sagemaker.estimator import EstimatorBase  # noqa: PLC0415  (SDK 3 has none)
        from sagemaker.session import Session  # noqa: PLC0415  (SDK 3 has none)
    except ImportError as error:
        raise JobNotImportable(
            f"got {type(estimator).__name__}, and the SageMaker SDK 2 is not installed: expected "
            "`pip install 'sagemaker<3'`, or from_model_trainer for a ModelTrainer of the SDK 3"
        ) from error
    if not isinstance(estimator, EstimatorBase):
        raise JobNotImportable(
            f"got {type(estimator).__name__}, expected an estimator of the SageMaker SDK 2, such "
            "as PyTorch; from_model_trainer reads a ModelTrainer of the SDK 3"
        )

    class Recorder(Session):  # type: ignore[misc]
        """Gets each request where its session would send it, as a pipeline's session does."""

        def __bool__(self) -> bool:
            return False  # the SDK reports calls of a session that is true to AWS

        def _intercept_create_request(self, request: dict[str, Any], *_: Any) -> None:
            raise Recorded(request)

    copied = copy.copy(estimator)
    for name, value in vars(estimator).items():
        setattr(copied, name, copy.copy(value) if isinstance(value, dict | list) else value)
    source = _with_uploaded_code(copied)
    region = estimator.sagemaker_session.boto_region_name
    copied.sagemaker_session = Recorder(
        boto_session=boto3.Session("nobody", "nothing", region_name=region),
        default_bucket="recorded",
    )
    if "/" not in str(copied.role):  # the SDK would ask IAM for its ARN; the lab has its own
        copied.role = UNKNOWN_LAB.role_arn
    kind = type(estimator).__name__
    try:
        copied.fit(inputs, wait=False, job_name=estimator.base_job_name or "estimator")
    except Recorded as recorded:
        return recorded.request, source
    except ValueError as error:
        raise JobNotImportable(f"the SDK refuses {kind}.fit: {error}") from error
    raise JobNotImportable(f"{kind}.fit asks for no training job")


def _with_uploaded_code(estimator: Any) -> str | None:
    """Gives the copy the code's place in S3, so that the SDK uploads none."""
    for name in ("git_config", "dependencies"):
        if getattr(estimator, name, None):
            raise JobNotImportable(
                f"{type(estimator).__name__} has {name}, expected all code in source_dir: a suite "
                "has one folder"
            )
    source = estimator.source_dir
    program = estimator.entry_point
    if program is None or (source is not None and is_s3_uri(str(source))):
        return None
    folder = Path(source) if source is not None else Path(program).parent
    estimator.source_dir = UPLOADED
    if source is None:
        estimator.entry_point = Path(program).name
    return str(folder)
