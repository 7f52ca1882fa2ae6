"""Suites from descriptions of training jobs: of the SDK 2, of the SDK 3, of this lab, and of jobs without a script."""

import io
import json
import re
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from tests.unit.sagemaker.test_request import first_request
from tests.unit.slices.test_model_trainer import CAPTURED
from tests.unit.suites import script_document, small_suite
from traindyno.core.instances.instance_types import instance_types
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.slices.imported.client import MOST_BYTES, import_described, neighbours, suggest_axes
from traindyno.slices.imported.job import JobNotImportable
from traindyno.slices.imported.suite_of_job import Decisions, base_request, comparable, import_job

GOLDEN = Path(__file__).parents[2] / "data/golden"
FILES = sorted(path for path in (*GOLDEN.glob("*_*.json"), *GOLDEN.glob("v2*/*.json")) if path.stem != "model_trainer")
ORIGINALS = {
    f"{path.stem} {name}": request
    for path in sorted((GOLDEN / "originals").glob("*.json"))
    for name, request in json.loads(path.read_text()).items()
}
REQUESTS = {str(path.relative_to(GOLDEN)): json.loads(path.read_text())["request"] for path in FILES} | ORIGINALS
DECISIONS = Decisions(examples=1000, max_usd=5, max_hours=2)  # type: ignore[arg-type]
DESCRIBED = botocore.session.get_session().get_service_model("sagemaker").shape_for("DescribeTrainingJobResponse")
# The lab's own, as the request of the SDK 2 has them too.
PLACES = (
    *("TrainingJobName", "RoleArn", "Tags", "OutputDataConfig", "CheckpointConfig", "DebugHookConfig.S3OutputPath"),
    *("Environment.TRAINDYNO_", "Environment.FI_", "HyperParameters.sagemaker_job_name", "ProfilerConfig"),
    *("StoppingCondition.MaxPendingTimeInSeconds", "ExperimentConfig", "ResourceConfig.KeepAlivePeriodInSeconds"),
)


def description(request: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """DescribeTrainingJob's answer about the request's job, which botocore's model accepts."""
    found = {name: value for name, value in request.items() if name != "Tags"}
    found |= {
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/job",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://results/model.tar.gz"},
        "TrainingJobStatus": "Completed", "SecondaryStatus": "Completed", "CreationTime": 1_790_000_000,
        "BillableTimeInSeconds": 1800, "EnableNetworkIsolation": False, **changes,
    }  # fmt: skip
    assert not ParamValidator().validate(found, DESCRIBED).has_errors()
    return found


def job_of(**changes: Any) -> dict[str, Any]:
    return description(first_request(parse_suite(script_document())), **changes)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_the_suite_of_a_job_of_the_sdk_2_asks_for_the_same_job(name: str) -> None:
    found = import_job(description(REQUESTS[name]), DECISIONS)
    assert [each.path for each in found.differences if not each.path.startswith(PLACES)] == []
    ours = comparable(base_request(parse_suite(found.document)), is_toolkit=True)
    theirs = comparable(REQUESTS[name], is_toolkit=True)
    theirs["ResourceConfig"] = {**theirs["ResourceConfig"]}
    theirs["ResourceConfig"].pop("KeepAlivePeriodInSeconds", None)
    for part in ("AlgorithmSpecification", "ResourceConfig", "InputDataConfig", "Arguments"):
        assert ours.get(part) == theirs.get(part)


def test_a_difference_is_found_in_each_part_of_a_request() -> None:
    suite = parse_suite(import_job(job_of(), DECISIONS).document)
    changed = {
        "RetryStrategy": {"MaximumRetryAttempts": 3},
        "ResourceConfig": {**job_of()["ResourceConfig"], "VolumeKmsKeyId": "key"},
        "VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
    }
    found = {each.path: each for each in import_job(job_of(**changed), DECISIONS).differences}
    assert {"RetryStrategy", "ResourceConfig.VolumeKmsKeyId", "VpcConfig"} <= found.keys()
    assert found["RetryStrategy"].reason == "a suite has no field for it"
    assert "labs/LAB.toml has subnets" in found["VpcConfig"].reason
    assert suite.workload.entry_point == "train.py"


def test_a_run_of_a_built_in_task_gives_its_workload_and_settings_back() -> None:
    suite = small_suite()
    found = import_job(description(first_request(suite)), Decisions(max_usd=1, max_hours=1))  # type: ignore[arg-type]
    imported = parse_suite(found.document)
    assert imported.workload == suite.workload
    assert (imported.training["precision"], imported.training["instance"]) == ("bf16", "ml.g5.xlarge")
    assert suggest_axes(found.document)["batch_size_per_device"] == [1, 2]


ALGORITHM = {"TrainingInputMode": "File"}
SHARED = {"sagemaker_program": '"traindyno_runs.py"', "sagemaker_submit_directory": '"s3://code/a.tar.gz"'}

SCRIPT = {**SHARED, "sagemaker_program": '"train.py"'}

OWN = {**SHARED, "sagemaker_program": '"traindyno_train.py"'}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"HyperParameters": {}}, "has its own program; expected a job that runs a script"),
        ({"HyperParameters": {}, "AlgorithmSpecification": {**ALGORITHM, "AlgorithmName": "xgb"}}, "the algorithm xgb"),
        (
            {"HyperParameters": {}, "AlgorithmSpecification": {**ALGORITHM, "ContainerEntrypoint": ["/bin/sh"]}},
            "its container starts /bin/sh",
        ),
        ({"HyperParameters": SHARED}, "it carried several runs of a suite"),
        (
            {"HyperParameters": {**SCRIPT, "sagemaker_program": '"train.sh"'}},
            'workload.entry_point: got "train.sh", expected a .py file',
        ),
        (
            {"HyperParameters": {**SCRIPT, "sagemaker_submit_directory": '"file:///opt/code"'}},
            "its code is file:///opt/code, expected a tarball in S3",
        ),
        ({"HyperParameters": {**SCRIPT, "sagemaker_submit_directory": "3"}}, "its code is 3, expected a tarball in S3"),
        ({"HyperParameters": {**SCRIPT, "sagemaker_submit_directory": '["a"]'}}, "its code is a list, expected"),
        ({"HyperParameters": {**SCRIPT, "sagemaker_program": "[1]"}}, "its script is a list, expected the name"),
        ({"HyperParameters": OWN}, "it runs Traindyno's program without its part of a suite"),
        ({"HyperParameters": {**OWN, "workload": "{}", "settings": "3"}}, "without its part of a suite"),
        ({"HyperParameters": {**OWN, "workload": '{"task": "script"}', "settings": "{}"}}, "without its part"),
        ({"HyperParameters": {**SCRIPT, "sagemaker_mpi_enabled": "true"}}, "mpirun starts its script"),
        ({"ResourceConfig": {"InstanceType": "ml.g5.huge", "VolumeSizeInGB": 1}}, "its instance type is ml.g5.huge"),
        (
            {"ResourceConfig": {"InstanceGroups": [
                {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1, "InstanceGroupName": "a"}], "VolumeSizeInGB": 1}},
            "it has instance groups, expected instances of one type",
        ),
    ],
)  # fmt: skip
def test_a_job_that_no_suite_can_ask_for_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(JobNotImportable) as error:
        import_job(job_of(**changes), DECISIONS)
    assert words in str(error.value)


def built_in(**workload: Any) -> dict[str, Any]:
    """A run of the lab's own program whose part of a suite is changed."""
    job = description(first_request(small_suite()))
    values = job["HyperParameters"]
    values["workload"] = json.dumps({**json.loads(values["workload"]), **workload})
    return job


def data_at(kind: str, path: str) -> dict[str, Any]:
    return built_in(**({"channels": {"more": path}} if kind == "channels" else {kind: {"path": path}}))


LOCAL = (
    "/etc/passwd",
    "../data",
    "./data",
    "~/data",
    "~",
    ".",
    "a/b/c",
    "data/train.jsonl",
    "train.txt",
    "a.zip",
    "C:\\a",
)


@pytest.mark.parametrize("kind", ["channels", "dataset", "model", "tokenizer"])
@pytest.mark.parametrize("path", [*LOCAL, "file:///etc", "S3://b/k", "sample://text"])
def test_a_path_of_this_machine_in_a_job_is_refused(kind: str, path: str) -> None:
    with pytest.raises(JobNotImportable) as error:
        import_job(data_at(kind, path), DECISIONS)
    assert f"workload.{kind}." in str(error.value)
    assert f"got {json.dumps(path)}, expected s3://…" in str(error.value)
    assert ("of the Hub" in str(error.value)) is (kind != "channels")


def test_an_s3_prefix_stays_in_the_suite_of_a_built_in_run() -> None:
    path = "s3://b/k.jsonl"
    assert import_job(data_at("dataset", path), DECISIONS).document["workload"]["dataset"] == {"path": path}


@pytest.mark.parametrize("path", ["gpt2", "Qwen/Qwen2.5-0.5B", "nyu-mll/glue"])
def test_names_of_the_hub_stay_in_the_suite_of_a_built_in_run(path: str) -> None:
    for kind in ("dataset", "model", "tokenizer"):
        assert import_job(data_at(kind, path), DECISIONS).document["workload"][kind] == {"path": path}
    with pytest.raises(JobNotImportable, match=r"workload\.channels\.more"):
        import_job(data_at("channels", path), DECISIONS)


def test_a_channel_of_a_script_names_no_folder_of_this_machine() -> None:
    channel = {"ChannelName": "train", "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "/home"}}}
    with pytest.raises(JobNotImportable, match=r'workload\.dataset\.path: got "/home", expected s3://'):
        import_job(job_of(InputDataConfig=[channel]), DECISIONS)


class Bucket:
    """An S3 client that holds two files."""

    def __init__(self, **files: bytes) -> None:
        self.files = files

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        assert Bucket == "your-bucket"
        return {"Body": io.BytesIO(self.files[Key.rpartition("/")[2].partition(".")[0]])}


def staged(name: str) -> Bucket:
    """What the SDK 3 uploads for the recorded trainer."""
    trainer = CAPTURED[name]["trainer"]
    return Bucket(
        sourcecode=json.dumps(trainer["source_code"]).encode(),
        distributed=json.dumps(trainer.get("distributed", {})).encode(),
    )


def test_a_job_of_the_sdk_3_is_read_from_its_drivers() -> None:
    job = description(CAPTURED["torchrun-2-nodes-kept-alive"]["request"])
    found = import_described(job, DECISIONS, s3=staged("torchrun-2-nodes-kept-alive"))  # type: ignore[arg-type]
    suite = parse_suite(found.document)
    assert suite.workload.entry_point == "train.py"
    # never a path of the machine that made the job: this one would send what is there
    assert suite.workload.source == "code-of-v3-20261121000000"
    assert found.left_out["workload.source"].endswith(
        "aws s3 cp --recursive s3://your-bucket/v3/v3-20261121000000/input/code code-of-v3-20261121000000"
    )
    assert suite.training["strategy"] == "ddp"


@pytest.mark.parametrize(
    "code", [{"source_dir": ["a"], "entry_script": "a.py"}, {"source_dir": "a", "entry_script": 3}]
)
def test_drivers_that_name_no_folder_and_script_are_refused(code: dict[str, Any]) -> None:
    files = Bucket(sourcecode=json.dumps(code).encode(), distributed=b"{}")
    with pytest.raises(JobNotImportable, match=r"expected a source_dir and a \.py file in it"):
        import_described(description(CAPTURED["basic"]["request"]), DECISIONS, s3=files)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["../../home", "a b", "/etc"])
def test_the_folder_for_a_jobs_code_is_below_the_suites(name: str) -> None:
    job = {**description(CAPTURED["basic"]["request"]), "TrainingJobName": name}
    source = import_described(job, DECISIONS, s3=staged("basic")).document["workload"]["source"]  # type: ignore[arg-type]
    assert re.fullmatch(r"code-of-[a-z-]+", source)


@pytest.mark.parametrize("content", [b"\x80\x04K\x01.", b"[1]", b"{", b"[" * 100_000, b" " * MOST_BYTES + b"{}"])
def test_damaged_drivers_are_refused(content: bytes) -> None:
    job = description(CAPTURED["basic"]["request"])
    with pytest.raises(JobNotImportable, match=r"sourcecode\.json"):
        import_described(job, DECISIONS, s3=Bucket(sourcecode=content, distributed=b"{}"))  # type: ignore[arg-type]


def test_neighbours_are_other_types_with_a_like_accelerator() -> None:
    for name in instance_types():
        found = neighbours(name)
        assert name not in found
        assert len(set(found)) == len(found) <= 5
        assert len({instance_types()[each].accelerator_kind for each in (name, *found)}) == 1
    assert neighbours("local.cpu") == []


def test_axes_are_the_neighbours_and_batch_sizes() -> None:
    job = job_of()
    job["HyperParameters"] |= {"per_device_batch-size": "16", "batch_size_name": '"a"'}
    axes = suggest_axes(import_job(job, DECISIONS).document)
    assert axes["instance"][:2] == ["ml.g5.xlarge", "ml.g5.2xlarge"]
    assert "ml.g6.xlarge" in axes["instance"]
    assert axes["hyperparameters.per_device_batch-size"] == [16, 8, 32]
    assert axes.keys() == {"instance", "hyperparameters.per_device_batch-size"}
