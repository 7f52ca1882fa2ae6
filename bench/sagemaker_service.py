"""How fast the local SageMaker service answers boto3 while a job runs and others wait for the machine."""

import io
import tarfile
import time
from collections.abc import Callable
from typing import Any

from bench.figures import Figure, Section, at_most, spread
from bench.groups import TITLES, command
from bench.own_cloud import OwnCloud, own_cloud
from localcloud import cloud as local_cloud

ANSWER_MILLISECONDS = 20
JOBS, QUICK_JOBS = 200, 20
BUCKET = "bench"
QUOTA_CODE = "L-LOCAL-CPU-TRAINING"
SCRIPT = "import time\ntime.sleep(600)\n"


def measure(*, is_quick: bool) -> Section:
    with own_cloud() as cloud:
        local_cloud.start(cloud.home, tell=lambda _: None)
        cloud.apply_quotas({QUOTA_CODE: JOBS + 1})
        stage_script(cloud)
        created, described = answer_milliseconds(cloud.client("sagemaker"), QUICK_JOBS if is_quick else JOBS)
    budget = at_most(ANSWER_MILLISECONDS)
    return Section(
        title=TITLES["service"],
        command=command("service"),
        figures=(
            Figure(name="CreateTrainingJob", value=spread(created), unit="ms", budget=budget),
            Figure(name="DescribeTrainingJob", value=spread(described), unit="ms", budget=budget),
        ),
        notes=("One job runs, the others wait for the machine. One client sends one request after the other.",),
    )


def stage_script(cloud: OwnCloud) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("train.py")
        member.size = len(SCRIPT)
        archive.addfile(member, io.BytesIO(SCRIPT.encode()))
    s3 = cloud.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    s3.put_object(Bucket=BUCKET, Key="sourcedir.tar.gz", Body=packed.getvalue())


def answer_milliseconds(sagemaker: Any, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds of creating so many jobs and of describing each. The first calls connect and are left out."""
    names = [f"bench-{number}" for number in range(count + 1)]
    created = [_milliseconds(sagemaker.create_training_job, **job_request(name)) for name in names]
    described = [_milliseconds(sagemaker.describe_training_job, TrainingJobName=name) for name in names]
    return created[1:], described[1:]


def job_request(name: str) -> dict[str, Any]:
    return {
        "TrainingJobName": name,
        "RoleArn": "arn:aws:iam::000000000000:role/training",
        "AlgorithmSpecification": {"TrainingImage": "pytorch", "TrainingInputMode": "File"},
        "OutputDataConfig": {"S3OutputPath": f"s3://{BUCKET}/out/"},
        "ResourceConfig": {"InstanceType": "local.cpu", "InstanceCount": 1, "VolumeSizeInGB": 30},
        "StoppingCondition": {"MaxRuntimeInSeconds": 600},
        "HyperParameters": {
            "sagemaker_program": '"train.py"',
            "sagemaker_submit_directory": f'"s3://{BUCKET}/sourcedir.tar.gz"',
        },
    }


def _milliseconds(operation: Callable[..., object], **request: Any) -> float:
    began = time.perf_counter()
    operation(**request)
    return (time.perf_counter() - began) * 1e3
