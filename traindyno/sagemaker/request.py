"""CreateTrainingJob requests of attempts to run or to prepare, equal to what the SDK sends for the
same job.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from traindyno.core.instances.instance_types import efa_environment, has_instance_storage
from traindyno.core.run.record import PreparationRecord, record_document
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.run.workload import Model
from traindyno.core.s3_keys import (
    checkpoints_prefix,
    is_s3_uri,
    output_prefix,
    s3_uri,
    tokens_prefix,
)
from traindyno.core.step_log.line import (
    CHECKPOINTS_VARIABLE,
    CONTAINER_CHECKPOINTS,
    CONTAINER_DIRECTORY,
    DIRECTORY_VARIABLE,
    SEED_VARIABLE,
)
from traindyno.core.suite.choices import InputMode, Purchase, Task
from traindyno.core.suite.preparation import preparation_seconds, preparation_settings
from traindyno.core.suite.suite import Run, Suite
from traindyno.sagemaker.channels import channel, preparation_channels, run_channels
from traindyno.sagemaker.images import has_framework_version, known_type, select_image_uri
from traindyno.sagemaker.job_names import attempt_job_name
from traindyno.sagemaker.job_settings import JobSettings, LabJobs
from traindyno.sagemaker.launcher import (
    CODE_CHANNEL,
    build_hyperparameters,
    find_source,
    toolkit_hyperparameters,
)

EXECUTION_TAG = "traindyno:execution"
# The run, the shared job or the preparation that the training job is an attempt of.
OWNER_TAG = "traindyno:run"
RUN_ID_VARIABLE = "TRAINDYNO_RUN_ID"
# For images/entry_point.py: how long a spot job's container stays after SIGTERM; SageMaker kills it
# after 120 s.
STAY_VARIABLE = "TRAINDYNO_STAY_AFTER_SIGTERM_SECONDS"
STAY_SECONDS = "115"


def build_preparation_request(
    preparation: DataPreparation, suite: Suite, *, attempt: int, settings: JobSettings
) -> dict[str, Any]:
    job_name = attempt_job_name(preparation, suite.name, attempt=attempt, lab=settings.lab)
    # The workload's own image may lack the packages that tokenise.
    workload = replace(suite.workload, image=None, full_run=None)
    image_uri = select_image_uri(preparation_settings(preparation.instance), workload, settings)
    bucket = settings.results_bucket
    execution_id = preparation.execution_id
    own = record_document(PreparationRecord(preparation=preparation, workload=workload))
    request: dict[str, Any] = {
        "TrainingJobName": job_name,
        "RoleArn": settings.role_arn,
        "AlgorithmSpecification": algorithm(image_uri),
        "HyperParameters": toolkit_hyperparameters(
            own, suite, job_name=job_name, settings=settings
        ),
        "InputDataConfig": [
            *preparation_channels(preparation, workload),
            *code_channels(suite, settings),
        ],
        # Tokens are left as plain files, which a channel can read.
        "OutputDataConfig": {
            "S3OutputPath": s3_uri(bucket, tokens_prefix(preparation.key)),
            "CompressionType": "NONE",
            **output_key(settings.jobs),
        },
        "ResourceConfig": {
            "InstanceType": preparation.instance,
            "InstanceCount": 1,
            **volume(settings.jobs, preparation.instance, size_gb=suite.job.volume_size_gb),
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": preparation_seconds(suite)},
        "CheckpointConfig": {
            "S3Uri": s3_uri(bucket, checkpoints_prefix(execution_id, preparation.preparation_id))
        },
        "Environment": {
            **container_environment(preparation.preparation_id),
            **workload.environment,
        },
        "ProfilerConfig": {"DisableProfiler": True},
        "Tags": job_tags(suite.name, execution_id, preparation.preparation_id, settings),
        **network(settings.jobs),
    }
    return {name: value for name, value in request.items() if value not in ([], {})}


def with_staged_model(suite: Suite, run: Run) -> Suite:
    if run.model_s3_uri is None:
        return suite
    workload = replace(suite.workload, model=Model(path=run.model_s3_uri))
    parts = (
        () if run.tokens else (workload.tokenizer, workload.dataset)
    )  # prepared tokens bring their tokenizer
    if not any(
        part is not None and part.path is not None and not is_s3_uri(part.path) for part in parts
    ):
        workload = replace(workload, hub_token_secret=None)
    return replace(suite, workload=workload)


def network(jobs: LabJobs) -> dict[str, Any]:
    """Fields of the request itself."""
    fields: dict[str, Any] = {}
    if jobs.subnet_ids:
        fields["VpcConfig"] = {
            "Subnets": [*jobs.subnet_ids],
            "SecurityGroupIds": [*jobs.security_group_ids],
        }
    if jobs.encrypts_traffic:
        fields["EnableInterContainerTrafficEncryption"] = True
    if jobs.isolates_network:
        fields["EnableNetworkIsolation"] = True
    return fields


def volume(jobs: LabJobs, instance_type: str, *, size_gb: int | None) -> dict[str, Any]:
    """Fields of ResourceConfig; ``size_gb`` of None is the lab's.

    SageMaker refuses a volume key for types with instance storage.
    """
    fields: dict[str, Any] = {"VolumeSizeInGB": size_gb or jobs.volume_size_gb}
    if jobs.volume_key_arn and not has_instance_storage(instance_type):
        fields["VolumeKmsKeyId"] = jobs.volume_key_arn
    return fields


def output_key(jobs: LabJobs) -> dict[str, str]:
    """Fields of OutputDataConfig."""
    return {"KmsKeyId": jobs.output_key_arn} if jobs.output_key_arn else {}


def code_channels(suite: Suite, settings: JobSettings) -> list[dict[str, Any]]:
    """An isolated container can't load its code from S3, so a channel contains it."""
    if not settings.jobs.isolates_network:
        return []
    return [channel(CODE_CHANNEL, find_source(suite, settings), InputMode.FILE)]


def build_training_job_request(
    run: Run, suite: Suite, *, attempt: int, settings: JobSettings
) -> dict[str, Any]:
    suite = with_staged_model(suite, run)
    job_name = attempt_job_name(run, suite.name, attempt=attempt, lab=settings.lab)
    image_uri = select_image_uri(run.cell.settings, suite.workload, settings)
    return job_request(
        run,
        suite,
        owner_id=run.run_id,
        job_name=job_name,
        image_uri=image_uri,
        hyperparameters=build_hyperparameters(
            run, suite, image_uri=image_uri, job_name=job_name, settings=settings
        ),
        channels=run_channels(run, suite.workload),
        environment=run_environment(run, suite),
        settings=settings,
    )


def job_request(
    run: Run,
    suite: Suite,
    *,
    owner_id: str,
    job_name: str,
    image_uri: str,
    hyperparameters: Mapping[str, str],
    channels: Sequence[Mapping[str, Any]],
    environment: Mapping[str, str],
    settings: JobSettings,
) -> dict[str, Any]:
    """The request of the job of ``run``, or of the job that it shares; ``owner_id`` is the run's or
    the job's.
    """
    bucket = settings.results_bucket
    execution_id = run.execution_id
    chosen = run.cell.settings
    limits = suite.limits
    metrics = [{"Name": name, "Regex": regex} for name, regex in suite.job.metrics.items()]
    request: dict[str, Any] = {
        "TrainingJobName": job_name,
        "RoleArn": settings.role_arn,
        "AlgorithmSpecification": {
            **algorithm(image_uri),
            **({"MetricDefinitions": metrics} if metrics else {}),
        },
        "HyperParameters": dict(hyperparameters),
        "InputDataConfig": [*channels, *code_channels(suite, settings)],
        "OutputDataConfig": {
            "S3OutputPath": s3_uri(
                bucket, output_prefix(execution_id, owner_id, is_kept=limits.chain_jobs)
            ),
            **output_key(settings.jobs),
        },
        "ResourceConfig": {
            "InstanceType": chosen.instance,
            "InstanceCount": chosen.instance_count,
            **volume(settings.jobs, chosen.instance, size_gb=suite.job.volume_size_gb),
        },
        "StoppingCondition": {"MaxRuntimeInSeconds": limits.max_job_seconds},
        "CheckpointConfig": {"S3Uri": s3_uri(bucket, checkpoints_prefix(execution_id, owner_id))},
        "Environment": dict(environment),
        "ProfilerConfig": {"DisableProfiler": True},
        "Tags": job_tags(suite.name, execution_id, owner_id, settings),
    }
    _limit_wait(request, suite, chosen.instance)
    request |= network(settings.jobs)
    if suite.job.debugger_hook:
        output_uri = request["OutputDataConfig"]["S3OutputPath"]
        request["DebugHookConfig"] = {"S3OutputPath": output_uri, "CollectionConfigurations": []}
    return {name: value for name, value in request.items() if value not in ([], {})}


def _limit_wait(request: dict[str, Any], suite: Suite, instance: str) -> None:
    """Limit the wait for capacity.

    SageMaker limits it on spot together with the run time, and on demand for accelerators only.
    """
    limits = suite.limits
    stopping = request["StoppingCondition"]
    instance_type = known_type(instance)
    if suite.purchase is Purchase.SPOT:
        stopping["MaxWaitTimeInSeconds"] = limits.max_job_seconds + limits.max_pending_seconds
        request["EnableManagedSpotTraining"] = True
        request["Environment"][STAY_VARIABLE] = STAY_SECONDS
    elif instance_type.has_accelerator and not instance_type.is_local:
        stopping["MaxPendingTimeInSeconds"] = limits.max_pending_seconds


def algorithm(image_uri: str) -> dict[str, Any]:
    algorithm: dict[str, Any] = {"TrainingInputMode": "File", "TrainingImage": image_uri}
    if has_framework_version(image_uri):
        algorithm["EnableSageMakerMetricsTimeSeries"] = True
    return algorithm


def run_environment(
    run: Run,
    suite: Suite,
    *,
    step_log: str = CONTAINER_DIRECTORY,
    checkpoints: str = CONTAINER_CHECKPOINTS,
) -> dict[str, str]:
    """Environment variables of a run.

    ``step_log`` and ``checkpoints`` are folders of the container.
    """
    instance_type = known_type(run.cell.settings.instance)
    environment = {**container_environment(run.run_id), DIRECTORY_VARIABLE: step_log}
    if suite.keeps_checkpoints:
        environment[CHECKPOINTS_VARIABLE] = checkpoints
    if suite.workload.task is Task.SCRIPT and run.seed is not None:
        environment[SEED_VARIABLE] = str(run.seed)
    environment |= efa_environment(instance_type, run.cell.settings.instance_count)
    return {**environment, **suite.workload.environment}


def container_environment(run_id: str) -> dict[str, str]:
    return {DIRECTORY_VARIABLE: CONTAINER_DIRECTORY, RUN_ID_VARIABLE: run_id}


def job_tags(
    suite_name: str, execution_id: str, run_id: str, settings: JobSettings
) -> list[dict[str, str]]:
    tags = {
        "traindyno:lab": settings.lab,
        "traindyno:suite": suite_name,
        EXECUTION_TAG: execution_id,
        OWNER_TAG: run_id,
        **settings.jobs.tags,
    }
    return [{"Key": key, "Value": value} for key, value in tags.items()]
