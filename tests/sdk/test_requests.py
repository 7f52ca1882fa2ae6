"""Our requests against the installed SageMaker SDK itself, its call captured where botocore would
send it.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.unit.sagemaker.test_request import SETTINGS, first_request
from tests.unit.suites import script_document
from traindyno.core.jobs.job import Job
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.shared_request import build_shared_job_request

ESTIMATOR_IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312"
KEY = "arn:aws:kms:us-east-1:123456789012:key/00000000-0000-0000-0000-000000000000"
GUARDED = {
    "subnet_ids": ("subnet-1", "subnet-2"),
    "security_group_ids": ("sg-1",),
    "encrypts_traffic": True,
    "volume_key_arn": KEY,
    "output_key_arn": KEY,
    "volume_size_gb": 200,
}


class Sent(Exception):
    """Ends the SDK's call with the request that it was about to send."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.request = request


def capture(params: dict[str, Any], **_: Any) -> None:
    raise Sent(params)


@pytest.fixture(scope="module")
def sdk_session() -> Any:
    from sagemaker.session import Session

    boto_session = boto3.Session("key", "secret", region_name="us-east-1")
    client = boto_session.client("sagemaker")
    client.meta.events.register("provide-client-params.sagemaker.CreateTrainingJob", capture)
    return Session(boto_session=boto_session, sagemaker_client=client, default_bucket="results")


def sdk_request(
    session: Any, suite: Suite, ours: dict[str, Any], **arguments: Any
) -> dict[str, Any]:
    """What the SDK sends for the job that ``ours`` describes, asked for in the SDK's own terms."""
    from sagemaker.inputs import TrainingInput
    from sagemaker.pytorch import PyTorch

    estimator = PyTorch(
        entry_point=suite.workload.entry_point,
        source_dir=suite.workload.source,
        hyperparameters=dict(suite.workload.hyperparameters),
        role=SETTINGS.role_arn,
        instance_type=ours["ResourceConfig"]["InstanceType"],
        instance_count=ours["ResourceConfig"]["InstanceCount"],
        max_run=ours["StoppingCondition"]["MaxRuntimeInSeconds"],
        output_path=ours["OutputDataConfig"]["S3OutputPath"],
        checkpoint_s3_uri=ours["CheckpointConfig"]["S3Uri"],
        environment=ours["Environment"],
        tags=ours["Tags"],
        sagemaker_session=session,
        disable_profiler=True,
        debugger_hook_config=False,
        **arguments,
    )
    inputs = {}
    for channel in ours.get("InputDataConfig", []):
        if channel["ChannelName"] == "code":
            continue  # the SDK's own, of an isolated job
        uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
        mode = channel.get("InputMode")
        inputs[channel["ChannelName"]] = TrainingInput(uri, input_mode=mode) if mode else uri
    with pytest.raises(Sent) as sent:
        estimator.fit(inputs or None, job_name=ours["TrainingJobName"], wait=False)
    return sent.value.request


def without_pending_limit(request: dict[str, Any]) -> dict[str, Any]:
    """The SDK 2.x has no argument for MaxPendingTimeInSeconds."""
    condition = {
        name: value for name, value in request["StoppingCondition"].items() if "Pending" not in name
    }
    return {**request, "StoppingCondition": condition}


def test_a_job_with_channels_and_checkpoints_is_the_sdks_own(sdk_session: Any) -> None:
    workload = {
        **script_document()["workload"],
        "dataset": {"path": "s3://bucket/data/abc/", "input_mode": "FastFile"},
        "channels": {"validation": "s3://bucket/data/def/"},
        "image": ESTIMATOR_IMAGE,
    }
    suite = parse_suite(
        script_document(
            workload=workload,
            training={"instance_count": 2},
            matrix={"instance": ["ml.g5.12xlarge"]},
        )
    )
    ours = first_request(suite)
    distribution = {"torch_distributed": {"enabled": True}}
    theirs = sdk_request(
        sdk_session,
        suite,
        ours,
        framework_version="2.8.0",
        py_version="py312",
        distribution=distribution,
    )
    assert without_pending_limit(ours) == theirs


def test_a_spot_job_on_an_image_of_ones_own_is_the_sdks_own(sdk_session: Any) -> None:
    image = "111122223333.dkr.ecr.us-east-1.amazonaws.com/lab:efa"
    workload = {**script_document()["workload"], "image": image}
    suite = parse_suite(
        script_document(workload=workload, purchase="spot", training={"strategy": "single"})
    )
    ours = first_request(suite)
    theirs = sdk_request(
        sdk_session,
        suite,
        ours,
        image_uri=image,
        use_spot_instances=True,
        max_wait=ours["StoppingCondition"]["MaxWaitTimeInSeconds"],
    )
    assert ours == theirs


def test_a_job_in_a_vpc_with_encryption_everywhere_is_the_sdks_own(sdk_session: Any) -> None:
    # a type without storage of its own, so that the volume's key is sent
    workload = {**script_document()["workload"], "image": ESTIMATOR_IMAGE.replace("gpu", "cpu")}
    suite = parse_suite(
        script_document(
            workload=workload,
            training={"strategy": "single"},
            matrix={"instance": ["ml.m5.xlarge"]},
        )
    )
    ours = first_request(suite, **GUARDED)
    theirs = sdk_request(
        sdk_session,
        suite,
        ours,
        framework_version="2.8.0",
        py_version="py312",
        subnets=["subnet-1", "subnet-2"],
        security_group_ids=["sg-1"],
        encrypt_inter_container_traffic=True,
        volume_kms_key=KEY,
        output_kms_key=KEY,
        volume_size=200,
    )
    assert {"VpcConfig", "EnableInterContainerTrafficEncryption"} <= set(ours)
    assert without_pending_limit(ours) == theirs


def test_an_isolated_job_is_the_sdks_own(sdk_session: Any, tmp_path: Path) -> None:
    workload = {**script_document()["workload"], "image": ESTIMATOR_IMAGE}
    suite = parse_suite(script_document(workload=workload, training={"strategy": "single"}))
    ours = first_request(suite, isolates_network=True)
    theirs = sdk_request(
        sdk_session,
        suite,
        ours,
        framework_version="2.8.0",
        py_version="py312",
        enable_network_isolation=True,
    )
    assert without_pending_limit(ours) == theirs


def test_a_job_of_the_model_parallel_librarys_version_2_is_the_sdks_own(sdk_session: Any) -> None:
    workload = {
        **script_document()["workload"],
        "hyperparameters": {"mp_parameters": '{"hybrid_shard_degree": 8}'},
    }
    registry = "658645717510.dkr.ecr.us-east-1.amazonaws.com"
    image = f"{registry}/smdistributed-modelparallel:2.4.1-gpu-py311-cu121"
    workload["image"] = image
    suite = parse_suite(
        script_document(
            workload=workload,
            training={"instance_count": 2},
            matrix={"instance": ["ml.p4d.24xlarge"]},
        )
    )
    ours = first_request(suite)
    parameters = {"hybrid_shard_degree": 8}
    theirs = sdk_request(
        sdk_session,
        suite,
        ours,
        framework_version="2.4.1",
        py_version="py311",
        distribution={
            "torch_distributed": {"enabled": True},
            "smdistributed": {"modelparallel": {"enabled": True, "parameters": parameters}},
        },
    )
    launcher = {name for name in theirs["HyperParameters"] if name.startswith("sagemaker_")}
    assert launcher == {name for name in ours["HyperParameters"] if name.startswith("sagemaker_")}
    assert theirs["HyperParameters"]["mp_parameters"] == ours["HyperParameters"]["mp_parameters"]


def test_a_shared_job_is_the_sdks_own_for_a_script_without_a_launcher(sdk_session: Any) -> None:
    workload = {
        **script_document()["workload"],
        "image": ESTIMATOR_IMAGE,
        "dataset": {"path": "s3://bucket/data/"},
    }
    matrix = {"instance": ["ml.g5.12xlarge"], "hyperparameters.lr": [0.001, 0.01]}
    suite = parse_suite(
        script_document(workload=workload, training={"instance_count": 2}, matrix=matrix)
    )
    runs = trial_runs("execution-1", suite.cells, [1])
    job = Job(execution_id="execution-1", job_id="j1a2b3c4d-1", runs=runs)
    ours = build_shared_job_request(job, suite, attempt=1, settings=SETTINGS)
    parents = replace(
        suite, workload=replace(suite.workload, entry_point="traindyno_runs.py", hyperparameters={})
    )
    theirs = sdk_request(sdk_session, parents, ours, framework_version="2.8.0", py_version="py312")
    assert without_pending_limit(ours) == theirs
