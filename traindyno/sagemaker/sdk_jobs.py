"""A training job's request as an object of the SageMaker SDK, which sends the same request.

The SDK 2 has estimators and the SDK 3 has trainers; one environment has one of them.
"""

from collections.abc import Mapping
from typing import Any

from traindyno.core.errors import TraindynoError


class SdkJobRefused(TraindynoError):
    """There is no recommended cell, it runs on this machine, or the SDK isn't installed."""


def build_estimator(request: Mapping[str, Any], *, session: Any) -> Any:
    """An ``Estimator`` whose ``fit()`` sends the request; its channels are the default inputs."""
    try:
        from sagemaker.debugger import DebuggerHookConfig  # noqa: PLC0415  (SDK 3 has none)
        from sagemaker.estimator import Estimator  # noqa: PLC0415  (SDK 3 has none)
        from sagemaker.inputs import TrainingInput  # noqa: PLC0415  (SDK 3 has none)
    except ImportError as error:
        raise SdkJobRefused(
            "estimator() needs the SageMaker SDK 2: `pip install 'sagemaker<3'`; with the SDK 3, "
            "use model_trainer()"
        ) from error

    class ReadyEstimator(Estimator):  # type: ignore[misc]
        """Estimator of a cell. ``fit()`` without inputs takes the cell's own."""

        channels: Mapping[str, Any]

        def fit(self, inputs: Any = None, **options: Any) -> None:
            super().fit(inputs or self.channels or None, **options)

    hook = request.get("DebugHookConfig")
    estimator = ReadyEstimator(
        **_estimator_options(request),
        disable_profiler=True,
        debugger_hook_config=DebuggerHookConfig(s3_output_path=hook["S3OutputPath"])
        if hook
        else False,
        sagemaker_session=session,
    )
    estimator.channels = {
        channel["ChannelName"]: _training_input(TrainingInput, channel)
        for channel in request.get("InputDataConfig", ())
    }
    return estimator


def _estimator_options(request: Mapping[str, Any]) -> dict[str, Any]:
    """The request's values as options of an ``Estimator``."""
    algorithm = request["AlgorithmSpecification"]
    resources = request["ResourceConfig"]
    stopping = request["StoppingCondition"]
    output = request["OutputDataConfig"]
    network = request.get("VpcConfig", {})
    return {
        "image_uri": algorithm["TrainingImage"],
        "role": request["RoleArn"],
        "instance_type": resources["InstanceType"],
        "instance_count": resources["InstanceCount"],
        "volume_size": resources["VolumeSizeInGB"],
        "volume_kms_key": resources.get("VolumeKmsKeyId"),
        "max_run": stopping["MaxRuntimeInSeconds"],
        "max_wait": stopping.get("MaxWaitTimeInSeconds"),
        "use_spot_instances": request.get("EnableManagedSpotTraining", False),
        "input_mode": algorithm["TrainingInputMode"],
        "metric_definitions": algorithm.get("MetricDefinitions"),
        "enable_sagemaker_metrics": algorithm.get("EnableSageMakerMetricsTimeSeries"),
        "hyperparameters": dict(request["HyperParameters"]),
        "environment": dict(request["Environment"]),
        "output_path": output["S3OutputPath"],
        "output_kms_key": output.get("KmsKeyId"),
        "checkpoint_s3_uri": request["CheckpointConfig"]["S3Uri"],
        "subnets": network.get("Subnets"),
        "security_group_ids": network.get("SecurityGroupIds"),
        "encrypt_inter_container_traffic": request.get(
            "EnableInterContainerTrafficEncryption", False
        ),
        "enable_network_isolation": request.get("EnableNetworkIsolation", False),
        "tags": request["Tags"],
        "base_job_name": base_name(request),
    }


def _training_input(kind: Any, channel: Mapping[str, Any]) -> Any:
    source = channel["DataSource"]["S3DataSource"]
    return kind(
        source["S3Uri"],
        s3_data_type=source["S3DataType"],
        distribution=source["S3DataDistributionType"],
        input_mode=channel.get("InputMode"),
    )


def build_model_trainer(request: Mapping[str, Any], *, session: Any = None) -> Any:
    """A ``ModelTrainer`` whose ``train()`` sends the request, without what the SDK 3 can't ask for:
    no profiler, a debugger hook, and metrics as time series.
    """
    try:
        from sagemaker.core import shapes  # noqa: PLC0415  (SDK 2 has none)
        from sagemaker.train import ModelTrainer, configs  # noqa: PLC0415  (SDK 2 has none)
    except ImportError as error:
        raise SdkJobRefused(
            "model_trainer() needs the SageMaker SDK 3: `pip install 'traindyno[model-trainer]'`; "
            "with the SDK 2, use estimator()"
        ) from error
    algorithm = request["AlgorithmSpecification"]
    stopping = request["StoppingCondition"]
    output = request["OutputDataConfig"]
    trainer = ModelTrainer(
        training_image=algorithm["TrainingImage"],
        training_input_mode=algorithm["TrainingInputMode"],
        role=request["RoleArn"],
        base_job_name=base_name(request),
        compute=_compute(configs, request),
        networking=_networking(configs, request),
        stopping_condition=configs.StoppingCondition(
            max_runtime_in_seconds=stopping["MaxRuntimeInSeconds"],
            max_wait_time_in_seconds=stopping.get("MaxWaitTimeInSeconds"),
            max_pending_time_in_seconds=stopping.get("MaxPendingTimeInSeconds"),
        ),
        hyperparameters=dict(request["HyperParameters"]),
        environment=dict(request["Environment"]),
        output_data_config=configs.OutputDataConfig(
            s3_output_path=output["S3OutputPath"], kms_key_id=output.get("KmsKeyId")
        ),
        checkpoint_config=configs.CheckpointConfig(s3_uri=request["CheckpointConfig"]["S3Uri"]),
        input_data_config=[
            _channel(shapes, channel) for channel in request.get("InputDataConfig", ())
        ],
        tags=[configs.Tag(key=tag["Key"], value=tag["Value"]) for tag in request["Tags"]],
        sagemaker_session=session,
    )
    metrics = algorithm.get("MetricDefinitions")
    if metrics:
        trainer = trainer.with_metric_definitions(
            [
                shapes.MetricDefinition(name=metric["Name"], regex=metric["Regex"])
                for metric in metrics
            ]
        )
    return trainer


def _compute(configs: Any, request: Mapping[str, Any]) -> Any:
    resources = request["ResourceConfig"]
    return configs.Compute(
        instance_type=resources["InstanceType"],
        instance_count=resources["InstanceCount"],
        volume_size_in_gb=resources["VolumeSizeInGB"],
        volume_kms_key_id=resources.get("VolumeKmsKeyId"),
        enable_managed_spot_training=request.get("EnableManagedSpotTraining"),
    )


def _networking(configs: Any, request: Mapping[str, Any]) -> Any:
    network = request.get("VpcConfig", {})
    return configs.Networking(
        subnets=network.get("Subnets"),
        security_group_ids=network.get("SecurityGroupIds"),
        enable_network_isolation=request.get("EnableNetworkIsolation"),
        enable_inter_container_traffic_encryption=request.get(
            "EnableInterContainerTrafficEncryption"
        ),
    )


def _channel(shapes: Any, channel: Mapping[str, Any]) -> Any:
    source = channel["DataSource"]["S3DataSource"]
    placed = shapes.S3DataSource(
        s3_uri=source["S3Uri"],
        s3_data_type=source["S3DataType"],
        s3_data_distribution_type=source["S3DataDistributionType"],
    )
    mode = {"input_mode": channel["InputMode"]} if "InputMode" in channel else {}
    return shapes.Channel(
        channel_name=channel["ChannelName"],
        data_source=shapes.DataSource(s3_data_source=placed),
        **mode,
    )


def base_name(request: Mapping[str, Any]) -> str:
    """A name that no rule of the lab waits for: its own begin with the lab's name."""
    return f"sdk-{request['TrainingJobName']}"[:40].rstrip("-")
