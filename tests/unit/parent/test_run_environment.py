"""A run of a shared job has the variables of a job of its own, apart from its folders."""

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.sagemaker_service.host.container_tree import HostTree, make_host_tree
from localcloud.sagemaker_service.host.process_environment import LocalImage, process_environment
from localcloud.sagemaker_service.host.toolkit import (
    HostResources,
    container_hyperparameters,
    read_program,
)
from localcloud.sagemaker_service.jobs.job import Engine, TrainingJob, new_job
from localcloud.sagemaker_service.settings import ServiceSettings
from tests.local.jobs import job_request
from tests.unit.parent.shared_job import run_document
from traindyno.core.suite.arguments import command_arguments
from traindyno.parent import run_environment as module
from traindyno.parent.document import JobOrder, RunOrder
from traindyno.parent.host import Host, this_host
from traindyno.parent.run_environment import arguments_of, run_environment

OWN_FOLDERS = {
    "SM_OUTPUT_DATA_DIR",
    "SM_MODEL_DIR",
    "TMPDIR",
    "TRAINDYNO_STEP_LOG_DIRECTORY",
    "TRAINDYNO_CHECKPOINT_DIRECTORY",
}
ADDED = {*module.CACHES, "TRAINDYNO_PARENT"}
OF_TORCHRUN = {"NCCL_PROTO", "NCCL_SOCKET_IFNAME"}
HYPERPARAMETERS: list[dict[str, Any]] = [
    {},
    {"run_id": "a", "settings": {"b": [1, None]}, "none": None, "flag": True, "lr": 1e-5},
    {"data": "/opt/ml/input/data/train", "x": "a b", "é": "/opt/mlx", "sub-learning.rate": 0.1},
]
CHANNELS = [{}, {"train": "train"}, {"train": "train-2", "runs": "runs-2", "model": "model"}]
ENVIRONMENTS: list[dict[str, str]] = [
    {},
    {
        "TRAINDYNO_CHECKPOINT_DIRECTORY": "/opt/ml/checkpoints/state",
        "HF_HOME": "/opt/ml/model",
        "NCCL_DEBUG": "INFO",
    },
]
CASES = list(itertools.product(HYPERPARAMETERS, CHANNELS, ENVIRONMENTS, ["process", "torchrun"]))
# What the training toolkit 5.1 sets before it starts torchrun
EFA = {"FI_PROVIDER": "efa"}
RDMA = {**EFA, "FI_EFA_USE_DEVICE_RDMA": "1", "RDMAV_FORK_SAFE": "1"}
OF_PLAIN = {
    "MASTER_ADDR": "algo-1",
    "MASTER_PORT": "7777",
    "NCCL_IB_DISABLE": "1",
    "NCCL_DEBUG": "WARN",
}
NETWORK = {*RDMA, *OF_PLAIN, "NCCL_PROTO", "NCCL_SOCKET_IFNAME"}


def job_of(run: RunOrder, instance_type: str = "local.cpu") -> JobOrder:
    return JobOrder("j1", "train.py", instance_type, 60.0, None, 1.0, (run,))


def variables_of(
    host: Host, instance_type: str = "local.cpu", inherited: Sequence[str] = (), **run: Any
) -> dict[str, str]:
    """Those of a run on this host, with ``/own`` as its folder."""
    order = RunOrder(**run_document("a", **run))
    job = job_of(order, instance_type)._replace(inherited=tuple(inherited))
    return run_environment(order, job, host, Path("/own"))


def described_job(
    program: str, hyperparameters: Mapping[str, Any], channels: Mapping[str, str], **given: str
) -> TrainingJob:
    toolkit = {
        "sagemaker_program": program,
        "sagemaker_submit_directory": "s3://results/code/abababababababababababababababababababababababababababababababab/sourcedir.tar.gz",
    }
    source = {"DataSource": {"S3DataSource": {"S3Uri": "s3://bucket/data/"}}}
    request = job_request(
        "job-a1",
        HyperParameters={
            name: json.dumps(value) for name, value in {**hyperparameters, **toolkit}.items()
        },
        InputDataConfig=[{"ChannelName": name, **source} for name in channels],
        Environment=given,
    )
    return new_job(request, arn="arn", engine=Engine.PROCESS, now_ms=0)


def environment_of(job: TrainingJob, tree: HostTree) -> dict[str, str]:
    localised = replace(
        job, request={**job.request, "HyperParameters": container_hyperparameters(job, tree)}
    )
    return process_environment(
        job,
        read_program(localised),
        tree,
        HostResources(gpu_count=0, core_count=4, master_port=1),
        image=LocalImage(python="python"),
        packages=None,
        settings=ServiceSettings(
            port=1, state_folder=tree.root, aws_endpoint="http://aws", cores=(0,)
        ),
        shell={"PATH": "/bin"},
        temporary=tree.root,
    )


@pytest.mark.parametrize("number", range(len(CASES)))
def test_a_run_has_the_variables_of_a_job_of_its_own(number: int, tmp_path: Path) -> None:
    hyperparameters, channels, given, launcher = CASES[number]
    tree = make_host_tree(tmp_path, "algo-1")
    flags = (
        {}
        if launcher == "process"
        else {"sagemaker_torch_distributed_enabled": True, "sagemaker_instance_type": "local.cpu"}
    )
    log = "/opt/ml/checkpoints/step_log"
    own = {"TRAINDYNO_STEP_LOG_DIRECTORY": log, "TRAINDYNO_RUN_ID": "a", **given}
    alone = environment_of(
        described_job(
            "train.py", {**hyperparameters, **flags}, {name: name for name in channels}, **own
        ),
        tree,
    )
    host = this_host(
        {
            **environment_of(
                described_job("traindyno_runs.py", {}, {n: n for n in channels.values()}), tree
            ),
            "TRAINDYNO_OPT_ML": str(tree.root),
        }
    )
    run = RunOrder(
        **run_document(
            "a",
            *command_arguments(hyperparameters),
            launcher=launcher,
            hyperparameters=hyperparameters,
            environment=own,
            channels=channels,
        )
    )
    job = job_of(run)
    shared = run_environment(run, job, host, tmp_path / "own")
    assert alone.keys() ^ shared.keys() <= ADDED | (
        OF_TORCHRUN if launcher == "torchrun" else set()
    )
    assert alone.keys() <= shared.keys()
    differing = {name for name in alone if alone[name] != shared[name]}
    mapped = {f"SM_CHANNEL_{name.upper()}" for name, channel in channels.items() if name != channel}
    assert differing <= OWN_FOLDERS | mapped
    assert json.loads(shared["SM_USER_ARGS"]) == arguments_of(run, host)
    for name, channel in channels.items():
        assert shared[f"SM_CHANNEL_{name.upper()}"] == str(tree.root / "input" / "data" / channel)
    assert shared["TRAINDYNO_STEP_LOG_DIRECTORY"] == str(tree.root / "checkpoints/a/step_log")
    assert shared.get("TRAINDYNO_CHECKPOINT_DIRECTORY") in {
        None,
        str(tree.root / "checkpoints/a/state"),
    }


@pytest.mark.parametrize(
    ("instance_type", "expected"),
    [
        ("ml.g5.xlarge", {}),
        ("ml.g5.48xlarge", EFA),
        ("ml.p4d.24xlarge", RDMA),
        ("ml.p5en.48xlarge", {}),
    ],
)
@pytest.mark.parametrize("launcher", ["process", "torchrun"])
def test_torchrun_has_the_toolkits_network_and_a_plain_script_keeps_its_own(
    launcher: str, instance_type: str, expected: dict[str, str]
) -> None:
    plain = {**OF_PLAIN, "NCCL_SOCKET_IFNAME": "eth0"}
    host = Host(
        "algo-1",
        ("algo-1",),
        "job-a1",
        Path("/folder"),
        {**plain, "SM_NETWORK_INTERFACE_NAME": "eth0"},
    )
    own = variables_of(host, instance_type, launcher=launcher)
    network = {name: value for name, value in own.items() if name in NETWORK}
    if launcher == "torchrun":
        assert network == {**expected, "NCCL_PROTO": "simple", "NCCL_SOCKET_IFNAME": "eth0"}
    else:
        assert network == plain


def test_variables_of_the_job_for_its_runs_are_the_runs_own() -> None:
    """They win over what the parent sets, as those of the document do; one that is not there is not
    made up.
    """
    given = {"API_KEY": "sesame", "TMPDIR": "/opt/ml/mine", "TRAINDYNO_OPT_ML": "/here", "B": "job"}
    host = Host("algo-1", ("algo-1",), "job-a1", Path("/folder"), given)
    own = variables_of(host, inherited=("API_KEY", "TMPDIR", "B", "C"), environment={"B": "run"})
    assert [own.get(name) for name in ("API_KEY", "TMPDIR", "B", "C")] == [
        "sesame",
        "/here/mine",
        "run",
        None,
    ]
    assert variables_of(host)["TMPDIR"] == "/own"


def test_the_toolkits_description_of_the_job_is_the_runs() -> None:
    given = {
        "hyperparameters": {},
        "user_entry_point": "traindyno_runs.py",
        "num_gpus": 8,
        "channel_input_dirs": {"runs": "x"},
    }
    environment = {"SM_TRAINING_ENV": json.dumps(given), "SM_HP_OLD": "1", "SM_CHANNEL_RUNS": "x"}
    host = Host("algo-1", ("algo-1",), "job-a1", Path("/folder"), environment)
    variables = variables_of(
        host, "ml.g5.xlarge", hyperparameters={"lr": 0.1}, channels={"train": "train-2"}
    )
    described = json.loads(variables["SM_TRAINING_ENV"])
    assert (described["hyperparameters"], described["user_entry_point"]) == (
        {"lr": 0.1},
        "train.py",
    )
    assert (described["num_gpus"], described["module_name"]) == (8, "train")
    assert described["channel_input_dirs"] == {"train": "/opt/ml/input/data/train-2"}
    assert {name for name in variables if name.startswith(("SM_HP_", "SM_CHANNEL_"))} == {
        "SM_HP_LR",
        "SM_CHANNEL_TRAIN",
    }


def test_container_paths_are_this_hosts_also_inside_of_values() -> None:
    host = Host("algo-1", ("algo-1",), "job-a1", Path("/folder"), {"TRAINDYNO_OPT_ML": "/here"})
    given = {
        "a": ["/opt/ml/input", {"b": "file:///opt/ml/x"}],
        "c": "/opt/mlx",
        "d": "/opt/ml/../etc",
        "e": 1,
    }
    assert host.localised(given) == {**given, "a": ["/here/input", {"b": "file:///here/x"}]}
    assert host._replace(environment={}).localised(given) == given


@pytest.mark.parametrize("launcher", ["process", "torchrun"])
def test_gloo_is_told_the_interface_on_several_hosts(tmp_path: Path, launcher: str) -> None:
    """The engine does not set it for them; with one host it does, and the run's own value wins."""
    for hosts in (["algo-1"], ["algo-1", "algo-2"]):
        environment = {
            "SM_HOSTS": json.dumps(hosts),
            "SM_CURRENT_HOST": "algo-1",
            "SM_NETWORK_INTERFACE_NAME": "eth0",
        }
        host = this_host(
            {**environment, "TRAINDYNO_JOB_FOLDER": str(tmp_path), "TRAINING_JOB_NAME": "job-a1"}
        )
        interface = variables_of(host, launcher=launcher).get("GLOO_SOCKET_IFNAME")
        assert interface == (None if len(hosts) == 1 else "eth0")
        own = variables_of(host, launcher=launcher, environment={"GLOO_SOCKET_IFNAME": "eth1"})
        assert own["GLOO_SOCKET_IFNAME"] == "eth1"
