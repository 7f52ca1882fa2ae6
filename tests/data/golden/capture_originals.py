"""Captures the SageMaker SDK's request for each cell of the posts; ``make golden`` runs it with
sagemaker 2.219.0.

It describes the jobs in the SDK's own terms and imports nothing of this project. 2.219.0 is the
last version that sends ``pytorchddp`` jobs as written.
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import sagemaker
from sagemaker.huggingface import HuggingFace, TrainingCompilerConfig
from sagemaker.inputs import TrainingInput
from sagemaker.pytorch import PyTorch
from sagemaker.session import Session

VERSION = "2.219.0"
BUCKET = "your-bucket"
ROLE = "arn:aws:iam::123456789012:role/SageMakerExecutionRole"
SOURCE = "s3://code/sourcedir.tar.gz"
JOB_NAME = "job"
P4D = "ml.p4d.24xlarge"
DDP = {"pytorchddp": {"enabled": True}}
SMDDP = {"smdistributed": {"dataparallel": {"enabled": True}}}
TORCHRUN = {"torch_distributed": {"enabled": True}}


class Sent(Exception):
    """Ends the SDK's call with the request that it was about to send."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request


@dataclass(frozen=True)
class Case:
    """One job; ``name`` is unique in its pack."""

    name: str
    estimator: type
    arguments: dict[str, Any]
    hyperparameters: dict[str, Any]
    channels: dict[str, Any] = field(default_factory=dict)


def gpt2_compiler() -> Iterator[Case]:
    common = {
        "instance_type": "ml.g4dn.12xlarge",
        "instance_count": 1,
        "py_version": "py38",
        "volume_size": 100,
        "disable_profiler": True,
        "debugger_hook_config": False,
        "metric_definitions": [
            {"Name": "summary_train_runtime", "Regex": "'train_runtime': ([0-9.]*)"},
            {
                "Name": "summary_train_samples_per_second",
                "Regex": "'train_samples_per_second': ([0-9.]*)",
            },
            {
                "Name": "summary_train_steps_per_second",
                "Regex": "'train_steps_per_second': ([0-9.]*)",
            },
            {"Name": "summary_train_loss", "Regex": "'train_loss': ([0-9.]*)"},
            {"Name": "epoch", "Regex": "'epoch': ([0-9.]*)"},
            {"Name": "train_loss", "Regex": "'loss': ([0-9.]*)"},
            {"Name": "learning_rate", "Regex": "'learning_rate': ([0-9.]*)"},
        ],
    }
    hyperparameters = {
        "model_type": "gpt2",
        "tokenizer_name": "gpt2",
        "dataset_name": "glue",
        "dataset_config_name": "sst2",
        "do_train": True,
        "do_eval": False,
        "fp16": True,
        "per_device_eval_batch_size": 8,
        "num_train_epochs": 100,
        "block_size": 512,
        "overwrite_output_dir": True,
        "save_strategy": "no",
        "evaluation_strategy": "no",
        "logging_strategy": "epoch",
        "output_dir": "/opt/ml/model",
        "dataloader_drop_last": True,
    }
    native = {
        **hyperparameters,
        "per_device_train_batch_size": 10,
        "learning_rate": float("5e-5") / 32 * 40,
    }
    compiled = {
        **hyperparameters,
        "per_device_train_batch_size": 20,
        "learning_rate": float("5e-5") / 32 * 80,
    }
    yield Case(
        "native", PyTorch, {**common, "framework_version": "1.11", "distribution": DDP}, native
    )
    versions = {
        "transformers_version": "4.21",
        "pytorch_version": "1.11",
        "compiler_config": TrainingCompilerConfig(),
    }
    distribution = {"pytorchxla": {"enabled": True}}
    yield Case(
        "compiled", HuggingFace, {**common, **versions, "distribution": distribution}, compiled
    )


def gptj_parallel() -> Iterator[Case]:
    options = (
        "-x NCCL_DEBUG=WARN -x SMDEBUG_LOG_LEVEL=ERROR -x SMP_DISABLE_D2D=1 -x "
        "SMP_D2D_GPU_BUFFER_SIZE_BYTES=1 -x SMP_NCCL_THROTTLE_LIMIT=1 -x FI_EFA_USE_DEVICE_RDMA=1 "
        "-x FI_PROVIDER=efa -x RDMAV_FORK_SAFE=1"
    )
    base = {
        "max_steps": 100,
        "seed": 12345,
        "fp16": 1,
        "lr": 2e-4,
        "lr_decay_iters": 125000,
        "min_lr": 1e-5,
        "lr-decay-style": "linear",
        "warmup": 0.01,
        "num_kept_checkpoints": 5,
        "checkpoint_freq": 200,
        "validation_freq": 1000,
        "logging_freq": 10,
        "save_final_full_model": 1,
        "manual_partition": 0,
        "skip_full_optimizer": 1,
        "shard_optimizer_state": 1,
        "activation_checkpointing": 1,
        "activation_strategy": "each",
        "optimize": "speed",
        "tensor_parallel_degree": 8,
        "pipeline_parallel_degree": 1,
        "train_batch_size": 8,
        "val_batch_size": 8,
        "prescaled_batch": 1,
        "max_context_width": 2048,
        "finetune_6b": 1,
    }
    tensor = {
        "ddp": True,
        "tensor_parallel_degree": 8,
        "partitions": 1,
        "shard_optimizer_state": True,
        "prescaled_batch": True,
        "fp16": True,
        "optimize": "speed",
        "auto_partition": True,
        "default_partition": 0,
    }
    pipeline = {
        "ddp": True,
        "microbatches": 2,
        "partitions": 8,
        "shard_optimizer_state": True,
        "prescaled_batch": False,
        "optimize": "memory",
        "auto_partition": True,
        "default_partition": 0,
        "offload_activations": True,
        "active_microbatches": 2,
    }
    simple = {
        **dict(list(pipeline.items())[:2]),
        "pipeline": "simple",
        **dict(list(pipeline.items())[2:]),
    }
    kept = {name: value for name, value in pipeline.items() if name != "active_microbatches"}
    sharded = {
        "ddp": True,
        "sharded_data_parallel_degree": 8,
        "partitions": 1,
        "prescaled_batch": False,
        "fp16": True,
        "offload_activations": False,
    }
    four = {"tensor_parallel_degree": 4}
    piped = {
        "tensor_parallel_degree": 1,
        "pipeline_parallel_degree": 8,
        "optimize": "memory",
        "prescaled_batch": 0,
    }
    cases: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "tensor-8": ({}, tensor),
        "tensor-4": (four, {**tensor, **four}),
        "tensor-4-whole-optimizer": (
            {**four, "shard_optimizer_state": 0},
            {**tensor, **four, "shard_optimizer_state": False},
        ),
        "tensor-4-model-in-s3": (
            {**four, "model_name_or_path": f"s3://{BUCKET}/gpt-j-6b/"},
            {**tensor, **four},
        ),
        "tensor-8-no-checkpointing": ({"activation_checkpointing": 0}, tensor),
        "pipeline-interleaved": (piped, pipeline),
        "pipeline-simple": (piped, simple),
        "pipeline-no-offloading": (piped, {**kept, "offload_activations": False}),
        "sharded-data-parallel": (
            {"tensor_parallel_degree": 1, "prescaled_batch": 0, "shard_optimizer_state": 0},
            sharded,
        ),
    }
    channels = {
        "train": f"s3://{BUCKET}/dataset/train/",
        "test": f"s3://{BUCKET}/dataset/validation/",
    }
    for name, (changes, parameters) in cases.items():
        mpi = {"enabled": True, "processes_per_host": 8, "custom_mpi_options": options}
        smp = {"modelparallel": {"enabled": True, "parameters": parameters}}
        version = ("1.13.1", "py39") if name == "sharded-data-parallel" else ("1.12", "py38")
        arguments = {
            "instance_type": P4D,
            "instance_count": 1,
            "framework_version": version[0],
            "py_version": version[1],
            "volume_size": 500,
            "disable_profiler": True,
            "debugger_hook_config": False,
            "distribution": {"mpi": mpi, "smdistributed": smp},
            "metric_definitions": [{"Name": "base_metric", "Regex": "<><><><><><>"}],
        }
        yield Case(name, PyTorch, arguments, {**base, **changes}, channels)


def albert_scaling() -> Iterator[Case]:
    for batch in (16, 32):
        for nodes in (2, 4, 8, 16):
            for workers in (0, 4, 8, 12, 16):
                yield _albert("smddp", nodes, workers, batch)
    for nodes in (2, 4, 8, 16):
        yield _albert("ddp", nodes, 12, 16)
    yield _albert("smddp", 2, 8, 16, stream_from=f"s3://{BUCKET}/albert/train/")


def _albert(strategy: str, nodes: int, workers: int, batch: int, **changes: Any) -> Case:
    arguments = {
        "instance_type": P4D,
        "instance_count": nodes,
        "framework_version": "1.12",
        "py_version": "py38",
        "disable_profiler": True,
        "debugger_hook_config": False,
        "distribution": SMDDP if strategy == "smddp" else DDP,
    }
    hyperparameters = {
        "model_type": "albert",
        "config_name": "albert-base-v2",
        "max_steps": -(-640_000 // (nodes * 8 * batch)),
        "per_device_train_batch_size": batch,
        "dataloader_num_workers": workers,
        "do_train": True,
        "output_dir": "/opt/ml/model",
        **changes,
    }
    channels = {"train": TrainingInput(f"s3://{BUCKET}/albert/train/", input_mode="FastFile")}
    name = (
        f"{strategy}-{nodes}-nodes-{workers}-workers-batch-{batch}{'-streamed' if changes else ''}"
    )
    return Case(name, PyTorch, arguments, hyperparameters, channels)


def bert_trainium() -> Iterator[Case]:
    common = {
        "instance_count": 1,
        "volume_size": 512,
        "disable_profiler": True,
        "distribution": TORCHRUN,
    }
    hyperparameters = {
        "model_name_or_path": "bert-base-uncased",
        "seed": 100,
        "max_length": 128,
        "per_device_train_batch_size": 8,
        "per_device_eval_batch_size": 8,
        "learning_rate": 5e-05,
        "max_train_steps": 2000,
        "num_train_epochs": 1,
    }
    channels = {
        "train": f"s3://{BUCKET}/classification/data/amazon/train.csv",
        "val": f"s3://{BUCKET}/classification/data/amazon/test.csv",
    }
    gpu = {**common, "instance_type": P4D, "framework_version": "1.13.1", "py_version": "py39"}
    trainium = {
        **common,
        "instance_type": "ml.trn1.32xlarge",
        "framework_version": "1.11.0",
        "py_version": "py38",
    }
    yield Case("p4d-batch-8", PyTorch, gpu, hyperparameters, channels)
    yield Case(
        "p4d-batch-32",
        PyTorch,
        gpu,
        {**hyperparameters, "per_device_train_batch_size": 32},
        channels,
    )
    yield Case("trn1", PyTorch, trainium, hyperparameters, channels)


PACKS = {
    "albert-scaling": albert_scaling,
    "bert-trainium": bert_trainium,
    "gpt2-compiler": gpt2_compiler,
    "gptj-parallel": gptj_parallel,
}


def open_session() -> Session:
    """A session whose client sends nothing."""

    def capture(params: dict[str, Any], **_: Any) -> None:
        raise Sent(params)

    boto_session = boto3.Session("key", "secret", region_name="us-east-1")
    client = boto_session.client("sagemaker")
    client.meta.events.register("provide-client-params.sagemaker.CreateTrainingJob", capture)
    return Session(boto_session=boto_session, sagemaker_client=client, default_bucket=BUCKET)


def request_of(case: Case, session: Session) -> dict[str, Any]:
    estimator = case.estimator(
        entry_point="train.py",
        source_dir=SOURCE,
        role=ROLE,
        output_path=f"s3://{BUCKET}/",
        sagemaker_session=session,
        hyperparameters=dict(case.hyperparameters),
        **case.arguments,
    )
    try:
        estimator.fit(case.channels or None, job_name=JOB_NAME, wait=False)
    except Sent as sent:
        return sent.request
    raise RuntimeError(f"{case.name}: the SDK sent no request")


def main(folder: Path) -> None:
    if sagemaker.__version__ != VERSION:
        raise SystemExit(f"expected sagemaker {VERSION}, got {sagemaker.__version__}")
    session = open_session()
    folder.mkdir(exist_ok=True)
    for pack, cases in PACKS.items():
        requests = {case.name: request_of(case, session) for case in cases()}
        (folder / f"{pack}.json").write_text(
            json.dumps(requests, indent=1) + "\n", encoding="utf-8"
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
