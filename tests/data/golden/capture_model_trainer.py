"""Captures the requests of ModelTrainers of the SageMaker SDK 3, each with the trainer's own
attributes.

``make golden`` runs it in an environment with sagemaker-train 1.27.0. It imports nothing of this
project, and its clients send nothing.
"""

import json
import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir
from enum import Enum
from importlib import metadata
from pathlib import Path
from typing import Any

import boto3
from sagemaker.core.helper.session_helper import Session
from sagemaker.core.shapes import (
    CheckpointConfig,
    MetricDefinition,
    OutputDataConfig,
    RemoteDebugConfig,
)
from sagemaker.train import defaults, model_trainer
from sagemaker.train.configs import (
    Compute,
    FileSystemDataSource,
    InputData,
    Networking,
    S3DataSource,
    SourceCode,
    StoppingCondition,
    Tag,
)
from sagemaker.train.distributed import MPI, SMP, Torchrun
from sagemaker.train.model_trainer import ModelTrainer

VERSION = "1.27.0"
BUCKET = "your-bucket"
ROLE = "arn:aws:iam::123456789012:role/SageMakerExecutionRole"
ACCOUNT_IMAGES = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
IMAGE = f"{ACCOUNT_IMAGES}/pytorch-training:2.10.0-gpu-py313"
HYPERPARAMETERS = {
    "model": "gpt2",
    "epochs": 1,
    "lr": 5e-05,
    "bf16": True,
    "layers": "1,2",
    "tag": "1e-5",
}
OUTPUT = f"s3://{BUCKET}/output"
# What each trainer's own attributes are, beside those that every pydantic model shows.
PRIVATE = ("_metric_definitions", "_remote_debug_config", "_infra_check_config", "_retry_strategy")


def source(**changes: Any) -> SourceCode:
    return SourceCode(**{"source_dir": "scripts", "entry_script": "train.py", **changes})


def compute(instance_type: str = "ml.g5.xlarge", **more: Any) -> Compute:
    return Compute(
        instance_type=instance_type, instance_count=more.pop("instance_count", 1), **more
    )


def trainer(session: Session, **arguments: Any) -> ModelTrainer:
    given = {
        "training_image": IMAGE,
        "source_code": source(),
        "compute": compute(),
        "role": ROLE,
        "hyperparameters": dict(HYPERPARAMETERS),
        "output_data_config": OutputDataConfig(s3_output_path=OUTPUT),
        "sagemaker_session": session,
        "base_job_name": "v3",
    }
    return ModelTrainer(**{**given, **arguments})


def cases(session: Session) -> dict[str, ModelTrainer]:
    data = InputData(channel_name="train", data_source="s3://your-data/train/")
    fast = InputData(
        channel_name="validation",
        data_source=S3DataSource(
            s3_data_type="S3Prefix",
            s3_uri="s3://your-data/val/",
            s3_data_distribution_type="ShardedByS3Key",
        ),
    )
    lustre = FileSystemDataSource(
        file_system_id="fs-0123456789abcdef0",
        file_system_type="FSxLustre",
        directory_path="/mount/data",
        file_system_access_mode="ro",
    )
    limits = StoppingCondition(max_runtime_in_seconds=7200, max_wait_time_in_seconds=14400)
    trainers = {
        "basic": trainer(
            session, environment={"A": "1"}, source_code=source(requirements="requirements.txt")
        ),
        "defaults": trainer(
            session, compute=None, training_image=IMAGE.replace("gpu", "cpu"), hyperparameters={}
        ),
        "channels": trainer(
            session,
            input_data_config=[data, fast, InputData(channel_name="files", data_source=lustre)],
        ),
        "torchrun-2-nodes-kept-alive": trainer(
            session,
            distributed=Torchrun(),
            compute=compute(
                "ml.p5.48xlarge",
                instance_count=2,
                volume_size_in_gb=200,
                keep_alive_period_in_seconds=1800,
            ),
        ),
        "torchrun-4-of-8-processes": trainer(
            session,
            distributed=Torchrun(process_count_per_node=4),
            compute=compute("ml.g5.48xlarge"),
        ),
        "spot": trainer(
            session,
            compute=compute(enable_managed_spot_training=True),
            stopping_condition=limits,
            checkpoint_config=CheckpointConfig(
                s3_uri=f"s3://{BUCKET}/checkpoints/", local_path="/opt/ml/checkpoints"
            ),
        ),
        "network": trainer(
            session,
            tags=[Tag(key="team", value="vision")],
            networking=Networking(
                subnets=["subnet-1"],
                security_group_ids=["sg-1"],
                enable_inter_container_traffic_encryption=True,
                enable_network_isolation=False,
            ),
        ),
        "trainium": trainer(
            session,
            distributed=Torchrun(process_count_per_node=32),
            compute=compute("ml.trn1.32xlarge"),
            training_image=f"{ACCOUNT_IMAGES}/pytorch-training-neuronx:2.9.0-neuronx-py312-sdk2.30.0-ubuntu24.04",
        ),
        "model-parallel": trainer(
            session,
            distributed=Torchrun(smp=SMP(hybrid_shard_degree=8, sm_activation_offloading=True)),
            compute=compute("ml.p4d.24xlarge", instance_count=2),
            training_image=(
                "658645717510.dkr.ecr.us-east-1.amazonaws.com/smdistributed-modelparallel:2.4.1-gpu-py311-cu121"
            ),
        ),
        "metrics": trainer(session)
        .with_metric_definitions([MetricDefinition(name="loss", regex="loss: ([0-9.]+)")])
        .with_remote_debug_config(RemoteDebugConfig(enable_remote_debug=True)),
        "mpi": trainer(
            session, distributed=MPI(process_count_per_node=8), compute=compute("ml.p4d.24xlarge")
        ),
        "command": trainer(
            session, source_code=source(entry_script=None, command="torchrun train.py --x 1")
        ),
        "shell-script": trainer(session, source_code=source(entry_script="train.sh")),
        "algorithm": trainer(
            session, training_image=None, algorithm_name="your-algorithm", source_code=None
        ),
        "no-script": trainer(session, source_code=None),
    }
    return trainers


def plain(value: Any) -> Any:
    """Attributes as JSON: objects as mappings of those that are set."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain(inner) for inner in value]
    return {
        name: plain(inner)
        for name, inner in vars(value).items()
        if inner is not None and type(inner).__name__ != "Unassigned"
    }


def described(sdk_trainer: ModelTrainer) -> dict[str, Any]:
    left_out = ("sagemaker_session", "config_mgr", "local_container_root", "training_mode")
    own = {
        name: value
        for name, value in vars(sdk_trainer).items()
        if name not in left_out and value is not None
    }
    own |= {
        name: getattr(sdk_trainer, name)
        for name in PRIVATE
        if getattr(sdk_trainer, name) is not None
    }
    document = {name: plain(value) for name, value in own.items()}
    if sdk_trainer.distributed is not None:
        document["distributed"] = {
            "class": type(sdk_trainer.distributed).__name__,
            **document["distributed"],
        }
    return document


class Offline(Session):  # type: ignore[misc]  # the packages' environment has no SDK 3
    """Uploads nothing and knows its bucket."""

    def default_bucket(self) -> str:
        return BUCKET

    def upload_data(self, path: str, bucket: str, key_prefix: str = "data", **_: Any) -> str:
        return f"s3://{bucket}/{key_prefix}"


def main(path: Path) -> None:
    if metadata.version("sagemaker-train") != VERSION:
        raise SystemExit(
            f"expected sagemaker-train {VERSION}, got {metadata.version('sagemaker-train')}"
        )
    # The SDK asks IAM about the role.
    defaults.TrainDefaults.get_role = staticmethod(lambda role, sagemaker_session=None: role)
    model_trainer._get_unique_name = lambda base, *_: f"{base}-20261121000000"
    boto_session = boto3.Session("key", "secret", region_name="us-east-1")
    captured = {}
    path = path.resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        scripts = Path(folder) / "scripts"
        scripts.mkdir()
        for name in ("train.py", "train.sh", "requirements.txt"):
            (scripts / name).write_text("\n")
        session = Offline(boto_session=boto_session)
        for name, sdk_trainer in cases(session).items():
            # before the SDK fills in what it uploads
            trainer_document = described(sdk_trainer)
            request = sdk_trainer._create_training_job_args(boto3=True)
            captured[name] = {"trainer": trainer_document, "request": request}
    path.write_text(json.dumps(captured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
