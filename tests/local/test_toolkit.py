"""A script gets the same arguments and variables from the local service as from SageMaker's
training toolkit.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.host.container_tree import make_host_tree
from localcloud.sagemaker_service.host.host_processes import share_cores
from localcloud.sagemaker_service.host.toolkit import (
    TORCHRUN,
    HostResources,
    UnsupportedJob,
    container_hyperparameters,
    launch_command,
    read_program,
    toolkit_environment,
)
from localcloud.sagemaker_service.jobs.job import Engine, TrainingJob, new_job
from localcloud.sagemaker_service.storage.s3_transfer import relative_name
from tests.local.jobs import job_request
from traindyno.core.suite.arguments import command_arguments

RESOURCES = HostResources(gpu_count=0, core_count=2, master_port=4321)


def job_with(
    hyperparameters: dict[str, str], instance_count: int = 1, **changes: Any
) -> TrainingJob:
    resources = {"InstanceType": "local.cpu", "InstanceCount": instance_count, "VolumeSizeInGB": 30}
    request = job_request(
        "job", HyperParameters=hyperparameters, ResourceConfig=resources, **changes
    )
    return new_job(request, arn="arn", engine=Engine.PROCESS, now_ms=0)


def test_arguments_come_in_the_order_of_their_names_and_in_pythons_spelling() -> None:
    given = {
        "lr": 5e-05,
        "bf16": True,
        "model": "gpt2",
        "mp_parameters": {"ddp": True, "a": 1},
        "e": 2,
        "none": None,
    }
    assert command_arguments(given) == [
        "--bf16",
        "True",
        "-e",
        "2",
        "--lr",
        "5e-05",
        "--model",
        "gpt2",
        "--mp_parameters",
        "a=1,ddp=True",
        "--none",
        "",
    ]


def test_values_without_json_are_taken_as_they_are() -> None:
    program = read_program(job_with({"plain": "gpt2", "quoted": '"gpt2"', "count": "3"}))
    assert program.user == {"plain": "gpt2", "quoted": "gpt2", "count": 3}


def test_one_process_is_plain_python_and_torchrun_gets_one_launcher_for_each_host() -> None:
    plain = job_with({"x": "1"})
    assert launch_command(
        read_program(plain), python="py", job=plain, host_rank=0, resources=RESOURCES
    ) == ["py", "train.py", "-x", "1"]
    spread = job_with({"sagemaker_torch_distributed_enabled": "true"}, instance_count=2)
    assert launch_command(
        read_program(spread), python="py", job=spread, host_rank=1, resources=RESOURCES
    ) == [
        "py",
        "-P",
        str(TORCHRUN),
        "--nnodes",
        "2",
        "--nproc_per_node",
        "1",
        "--rdzv_backend",
        "loopback",
        "--rdzv_endpoint",
        "127.0.0.1:4321",
        "--rdzv_conf",
        "rank=1",
        "--local_addr",
        "127.0.0.1",
        "train.py",
    ]


def test_a_launcher_missing_on_this_machine_is_refused_by_name() -> None:
    with pytest.raises(
        UnsupportedJob,
        match=r"^sagemaker_distributed_dataparallel_enabled: SMDDP is not offered; .*Python and "
        r"torchrun$",
    ):
        read_program(job_with({"sagemaker_distributed_dataparallel_enabled": "true"}))


def test_the_environment_describes_cluster_channels_and_hyperparameters(tmp_path: Path) -> None:
    channel = {
        "ChannelName": "train",
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "s3://b/d"}},
    }
    hyperparameters = {
        "run_id": '"r-1"',
        "settings": '{"b": 1}',
        "sagemaker_torch_distributed_enabled": "true",
    }
    job = job_with(hyperparameters, instance_count=2, InputDataConfig=[channel])
    tree = make_host_tree(tmp_path, "algo-2")
    variables = toolkit_environment(job, read_program(job), tree, RESOURCES)
    assert json.loads(variables["SM_HPS"]) == {"run_id": "r-1", "settings": {"b": 1}}
    assert json.loads(variables["SM_FRAMEWORK_PARAMS"]) == {
        "sagemaker_torch_distributed_enabled": True
    }
    assert json.loads(variables["SM_HOSTS"]) == ["algo-1", "algo-2"]
    assert (variables["SM_CURRENT_HOST"], variables["SM_HP_RUN_ID"], variables["SM_NUM_CPUS"]) == (
        "algo-2",
        "r-1",
        "2",
    )
    assert variables["SM_CHANNEL_TRAIN"] == f"{tmp_path}/algo-2/ml/input/data/train"


def test_container_paths_become_this_hosts_also_inside_json(tmp_path: Path) -> None:
    tree = make_host_tree(tmp_path, "algo-1")
    job = job_with(
        {
            "a": '"/opt/ml/model"',
            "b": '{"deep": ["/opt/ml/x", "/opt/mlx"]}',
            "c": "/opt/ml",
            "d": "1.0",
        }
    )
    hyperparameters = container_hyperparameters(job, tree)
    assert json.loads(hyperparameters["a"]) == f"{tree.root}/model"
    assert json.loads(hyperparameters["b"]) == {"deep": [f"{tree.root}/x", "/opt/mlx"]}
    assert (hyperparameters["c"], hyperparameters["d"]) == (str(tree.root), "1.0")


@pytest.mark.parametrize(
    ("host_count", "shares"),
    [(1, [[0, 1, 2]]), (2, [[0], [1, 2]]), (3, [[0], [1], [2]]), (4, [[0], [1], [2], [0]])],
)
def test_hosts_share_the_cores_as_evenly_as_they_divide(
    host_count: int, shares: list[list[int]]
) -> None:
    assert share_cores((0, 1, 2), host_count) == shares


@pytest.mark.parametrize(
    ("key", "prefix", "name"),
    [
        ("data/train/a/b.txt", "data/train", "a/b.txt"),
        ("data/train/a.txt", "data/train/", "a.txt"),
        ("data/train.csv", "data/train.csv", "train.csv"),
        ("data/train-2.csv", "data/train", "train-2.csv"),
    ],
)
def test_a_file_is_named_by_the_text_after_the_prefix(key: str, prefix: str, name: str) -> None:
    assert relative_name(key, prefix) == name
