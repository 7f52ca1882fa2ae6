"""Suites from training jobs and from ModelTrainers of the SageMaker SDK 3, against the requests of
the SDK itself.

capture_model_trainer.py recorded both; the SDK 3 and the pinned SDK 2 can't share an environment.
"""

import io
import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import botocore.session
import pytest
import yaml
from botocore.validate import ParamValidator
from typer import BadParameter

from tests.sentences import Snapshot
from tests.unit.core.suite.test_secrets_check import NO_SECRETS, SECRET_NAMES, SECRET_VALUES
from tests.unit.sagemaker.test_request import first_request
from tests.unit.suites import script_document, small_suite
from traindyno.api.suite_loading import load_suite
from traindyno.api.suite_text import read_suite_text
from traindyno.cli.option_values import write_new
from traindyno.core.instances.instance_types import instance_types
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.slices.imported.client import (
    MOST_BYTES,
    import_described,
    neighbours,
    notes,
    suggest_axes,
    suite_text,
)
from traindyno.slices.imported.job import JobNotImportable
from traindyno.slices.imported.model_trainer import from_model_trainer
from traindyno.slices.imported.request_differences import base_request, differences_of
from traindyno.slices.imported.suite_of_job import Decisions, ImportedSuite, import_job

CAPTURED = json.loads((Path(__file__).parents[2] / "data/golden/model_trainer.json").read_text())
PAGE = Path(__file__).parents[3] / "docs" / "own-script.md"
# Attributes of a trainer that are mappings, and not objects of the SDK.
MAPPINGS = ("hyperparameters", "environment")
REFUSED = {
    "mpi": "distributed is MPI, expected Torchrun or nothing",
    "command": "source_code.command is a shell command, expected source_code.entry_script",
    "shell-script": "entry_script train.sh, expected a source_dir and a .py file",
    "algorithm": "no source_code, expected a script",
    "no-script": "no source_code, expected a script",
}
IMPORTED = sorted(CAPTURED.keys() - REFUSED)
DECISIONS = Decisions(examples=1000, max_usd=5, max_hours=2)  # type: ignore[arg-type]
# What v3 adds to each job, and the lab to each of its own: all other differences are listed below
# by trainer.
ALWAYS = {
    "TrainingJobName",
    "RoleArn",
    "Tags",
    "OutputDataConfig",
    "CheckpointConfig",
    "ProfilerConfig",
    "HyperParameters.sagemaker_",
    "Environment.TRAINDYNO_",
    "InputDataConfig.code",
    "InputDataConfig.sm_drivers",
    "AlgorithmSpecification.ContainerEntrypoint",
    "AlgorithmSpecification.ContainerArguments",
    "AlgorithmSpecification.EnableSageMakerMetricsTimeSeries",
    "StoppingCondition.MaxPendingTimeInSeconds",
}
FURTHER = {
    "channels": {
        "InputDataConfig.validation.DataSource.S3DataSource.S3DataDistributionType",
        "InputDataConfig.files",  # on FSx for Lustre, which no suite names
    },
    "network": {"VpcConfig", "EnableInterContainerTrafficEncryption"},
    "metrics": {"RemoteDebugConfig"},
    "torchrun-2-nodes-kept-alive": {
        "ResourceConfig.KeepAlivePeriodInSeconds",
        "Environment.FI_PROVIDER",
        "Environment.FI_EFA_USE_DEVICE_RDMA",
    },
    "model-parallel": {"Arguments.--mp_parameters"},
}
GOLDEN = Path(__file__).parents[2] / "data/golden"
DESCRIBED = (
    botocore.session.get_session()
    .get_service_model("sagemaker")
    .shape_for("DescribeTrainingJobResponse")
)
# The lab's own, as the request of the SDK 2 has them too.
PLACES = (
    "TrainingJobName",
    "RoleArn",
    "Tags",
    "OutputDataConfig",
    "CheckpointConfig",
    "DebugHookConfig.S3OutputPath",
    "Environment.TRAINDYNO_",
    "Environment.FI_",
    "HyperParameters.sagemaker_job_name",
    "ProfilerConfig",
    "StoppingCondition.MaxPendingTimeInSeconds",
    "ExperimentConfig",
    "ResourceConfig.KeepAlivePeriodInSeconds",
)
ALGORITHM = {"TrainingInputMode": "File"}
SHARED = {
    "sagemaker_program": '"traindyno_runs.py"',
    "sagemaker_submit_directory": '"s3://code/a.tar.gz"',
}
SCRIPT = {**SHARED, "sagemaker_program": '"train.py"'}
OWN = {**SHARED, "sagemaker_program": '"traindyno_train.py"'}
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
# A secret under a name that says it, and under one that says nothing.
NAMED = [*SECRET_NAMES.items(), *(("plain", value) for value in SECRET_VALUES)]
PLANTED = "postgres://user:the-password@host/db"
SOURCE_CODE = CAPTURED["basic"]["trainer"]["source_code"]
TRICKY = (
    "1e-5",
    "1E5",
    "0x1f",
    "0o17",
    "1_000",
    ".5",
    "1.",
    "+1",
    "true",
    "no",
    "null",
    "~",
    "",
    " a",
    "a: b",
    "# c",
    "2026-11-23",
    "12:30:00",
    "'",
    '"',
    "\\",
    "a\nb",
    "\u202e",
    "é",
    "\U0001f600",
    "*a",
    "&a",
    "!!python/object:os",
)
FILES = sorted(
    path
    for path in (*GOLDEN.glob("*_*.json"), *GOLDEN.glob("v2*/*.json"))
    if path.stem != "model_trainer"
)
ORIGINALS = {
    f"{path.stem} {name}": request
    for path in sorted((GOLDEN / "originals").glob("*.json"))
    for name, request in json.loads(path.read_text()).items()
}
REQUESTS = {
    str(path.relative_to(GOLDEN)): json.loads(path.read_text())["request"] for path in FILES
} | ORIGINALS


def trainer_of(name: str, **changes: Any) -> Any:
    """An object with the attributes of the recorded trainer."""
    return as_object({**CAPTURED[name]["trainer"], **changes})


def as_object(value: Any, name: str = "") -> Any:
    if isinstance(value, dict) and name not in MAPPINGS:
        kind = type(value.get("class", "Namespace"), (SimpleNamespace,), {})
        return kind(
            **{key: as_object(inner, key) for key, inner in value.items() if key != "class"}
        )
    return [as_object(inner) for inner in value] if isinstance(value, list) else value


def imported(name: str, **changes: Any) -> ImportedSuite:
    return from_model_trainer(trainer_of(name, **changes), DECISIONS)


@pytest.mark.parametrize("name", IMPORTED)
def test_all_differences_from_the_sdks_request_are_listed_and_no_others(name: str) -> None:
    imported_suite = imported(name)
    recorded = differences_of(
        CAPTURED[name]["request"], parse_suite(imported_suite.document), is_toolkit=False
    )
    assert {difference.path for difference in imported_suite.differences} == {
        difference.path for difference in recorded
    }
    further = {
        difference.path
        for difference in imported_suite.differences
        if not difference.path.startswith(tuple(ALWAYS))
    }
    assert further == FURTHER.get(name, set())
    assert {"InputDataConfig.code", "InputDataConfig.sm_drivers"} <= {
        difference.path for difference in imported_suite.differences
    }


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_trainer_with_a_job_beyond_any_suite_is_refused(name: str) -> None:
    with pytest.raises(JobNotImportable) as error:
        imported(name)
    assert REFUSED[name] in str(error.value)


def test_arguments_are_written_as_the_drivers_write_them() -> None:
    """The drivers pass ``true`` where the toolkit would pass ``True``, so the suite holds the
    text.
    """
    arguments = imported("basic").document["workload"]["hyperparameters"]
    assert arguments["bf16"] == "true"
    assert arguments["layers"] == "1,2"
    assert (arguments["epochs"], arguments["lr"]) == (1, 5e-05)


def test_options_of_the_drivers_missing_in_the_toolkit_are_listed() -> None:
    left_out = imported("torchrun-4-of-8-processes").left_out
    assert left_out.keys() == {"distributed.process_count_per_node"}
    assert left_out["distributed.process_count_per_node"].startswith("4; ")
    code = {**CAPTURED["basic"]["trainer"]["source_code"], "requirements": "needs.txt"}
    assert "source_code.requirements" in imported("basic", source_code=code).left_out


def test_channels_of_the_call_replace_the_trainers() -> None:
    given = SimpleNamespace(channel_name="train", data_source="s3://other/train/")
    imported_suite = from_model_trainer(
        trainer_of("channels"), DECISIONS, input_data_config=[given]
    )
    assert imported_suite.document["workload"]["dataset"]["path"] == "s3://other/train/"
    assert sorted(imported_suite.document["workload"]["channels"]) == ["validation"]


def test_a_value_filled_in_by_a_pipeline_is_refused() -> None:
    class PipelineVariable:
        __slots__ = ()

    trainer = trainer_of("basic")
    trainer.training_image = PipelineVariable()
    with pytest.raises(JobNotImportable, match="got PipelineVariable, expected"):
        from_model_trainer(trainer)


def test_the_recorded_trainers_have_the_version_of_the_requirements() -> None:
    root = Path(__file__).parents[3]
    script = (root / "tests/data/golden/capture_model_trainer.py").read_text()
    version = next(line.split('"')[1] for line in script.splitlines() if line.startswith("VERSION"))
    assert f"sagemaker-train=={version} " in (root / "requirements/model_trainer.txt").read_text()


def test_the_example_of_the_page_makes_a_suite_of_a_trainer() -> None:
    section = PAGE.read_text().partition("A ModelTrainer of the SageMaker SDK 3")[2]
    (example,) = re.findall(r"^```python\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {"trainer": trainer_of("basic")}
    exec(compile(example, PAGE.name, "exec"), names)
    assert base_request(names["suite"].suite) == base_request(parse_suite(names["found"].document))
    assert names["suite"].suite.limits.max_usd == 200


def description(request: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """DescribeTrainingJob's answer about the request's job, which botocore's model accepts."""
    untagged = {name: value for name, value in request.items() if name != "Tags"}
    untagged |= {
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:123456789012:training-job/job",
        "ModelArtifacts": {"S3ModelArtifacts": "s3://results/model.tar.gz"},
        "TrainingJobStatus": "Completed",
        "SecondaryStatus": "Completed",
        "CreationTime": 1_790_000_000,
        "BillableTimeInSeconds": 1800,
        "EnableNetworkIsolation": False,
        **changes,
    }
    assert not ParamValidator().validate(untagged, DESCRIBED).has_errors()
    return untagged


def job_of(**changes: Any) -> dict[str, Any]:
    return description(first_request(parse_suite(script_document())), **changes)


@pytest.mark.parametrize("name", sorted(REQUESTS))
def test_the_suite_of_a_job_of_the_sdk_2_asks_for_the_same_job(name: str) -> None:
    imported_suite = import_job(description(REQUESTS[name]), DECISIONS)
    assert [
        difference.path
        for difference in imported_suite.differences
        if not difference.path.startswith(PLACES)
    ] == []


def test_a_difference_is_found_in_each_part_of_a_request(snapshot: Snapshot) -> None:
    suite = parse_suite(import_job(job_of(), DECISIONS).document)
    changed = {
        "RetryStrategy": {"MaximumRetryAttempts": 3},
        "ResourceConfig": {**job_of()["ResourceConfig"], "VolumeKmsKeyId": "key"},
        "VpcConfig": {"Subnets": ["subnet-1"], "SecurityGroupIds": ["sg-1"]},
    }
    differences = {
        difference.path: difference
        for difference in import_job(job_of(**changed), DECISIONS).differences
    }
    assert {"RetryStrategy", "ResourceConfig.VolumeKmsKeyId", "VpcConfig"} <= differences.keys()
    snapshot(differences["RetryStrategy"].reason)
    assert "labs/LAB.toml has subnets" in differences["VpcConfig"].reason
    assert suite.workload.entry_point == "train.py"


def test_a_run_of_a_built_in_task_gives_its_workload_and_settings_back() -> None:
    suite = small_suite()
    job = import_job(description(first_request(suite)), Decisions(max_usd=1, max_hours=1))  # type: ignore[arg-type]
    imported = parse_suite(job.document)
    assert imported.workload == suite.workload
    assert (imported.training["precision"], imported.training["instance"]) == (
        "bf16",
        "ml.g5.xlarge",
    )
    assert suggest_axes(job.document)["batch_size_per_device"] == [1, 2]


@pytest.mark.parametrize(
    "changes",
    [
        {"HyperParameters": {}},
        {
            "HyperParameters": {},
            "AlgorithmSpecification": {**ALGORITHM, "AlgorithmName": "xgb"},
        },
        {
            "HyperParameters": {},
            "AlgorithmSpecification": {**ALGORITHM, "ContainerEntrypoint": ["/bin/sh"]},
        },
        {"HyperParameters": SHARED},
        {"HyperParameters": {**SCRIPT, "sagemaker_program": '"train.sh"'}},
        {"HyperParameters": {**SCRIPT, "sagemaker_submit_directory": '"file:///opt/code"'}},
        {"HyperParameters": {**SCRIPT, "sagemaker_submit_directory": "3"}},
        {"HyperParameters": {**SCRIPT, "sagemaker_submit_directory": '["a"]'}},
        {"HyperParameters": {**SCRIPT, "sagemaker_program": "[1]"}},
        {"HyperParameters": OWN},
        {"HyperParameters": {**OWN, "workload": "{}", "settings": "3"}},
        {"HyperParameters": {**OWN, "workload": '{"task": "script"}', "settings": "{}"}},
        {"HyperParameters": {**SCRIPT, "sagemaker_mpi_enabled": "true"}},
        {"ResourceConfig": {"InstanceType": "ml.g5.huge", "VolumeSizeInGB": 1}},
        {
            "ResourceConfig": {
                "InstanceGroups": [
                    {
                        "InstanceType": "ml.g5.xlarge",
                        "InstanceCount": 1,
                        "InstanceGroupName": "a",
                    }
                ],
                "VolumeSizeInGB": 1,
            }
        },
    ],
)
def test_a_job_beyond_any_suite_is_refused(snapshot: Snapshot, changes: dict[str, Any]) -> None:
    with pytest.raises(JobNotImportable) as error:
        import_job(job_of(**changes), DECISIONS)
    snapshot(str(error.value))


def built_in(**workload: Any) -> dict[str, Any]:
    """A run of the lab's own program whose part of a suite is changed."""
    job = description(first_request(small_suite()))
    values = job["HyperParameters"]
    values["workload"] = json.dumps({**json.loads(values["workload"]), **workload})
    return job


def data_at(kind: str, path: str) -> dict[str, Any]:
    return built_in(
        **({"channels": {"more": path}} if kind == "channels" else {kind: {"path": path}})
    )


@pytest.mark.parametrize("kind", ["channels", "dataset", "model", "tokenizer"])
@pytest.mark.parametrize("path", [*LOCAL, "file:///etc", "S3://b/k", "sample://text"])
def test_a_path_of_this_machine_in_a_job_is_refused(kind: str, path: str) -> None:
    with pytest.raises(JobNotImportable) as error:
        import_job(data_at(kind, path), DECISIONS)
    assert f"workload.{kind}." in str(error.value)
    assert f"got {json.dumps(path)}, expected s3://…" in str(error.value)
    assert ("of the Hub" in str(error.value)) is (kind != "channels")


@pytest.mark.parametrize("path", ["gpt2", "Qwen/Qwen2.5-0.5B", "nyu-mll/glue", "s3://b/k.jsonl"])
def test_s3_uris_and_names_of_the_hub_stay_in_the_suite_of_a_built_in_run(path: str) -> None:
    for kind in ("dataset", "model", "tokenizer"):
        assert import_job(data_at(kind, path), DECISIONS).document["workload"][kind] == {
            "path": path
        }
    if not path.startswith("s3:"):
        with pytest.raises(JobNotImportable, match=r"workload\.channels\.more"):
            import_job(data_at("channels", path), DECISIONS)


def test_a_channel_of_a_script_names_no_folder_of_this_machine() -> None:
    channel = {
        "ChannelName": "train",
        "DataSource": {"S3DataSource": {"S3DataType": "S3Prefix", "S3Uri": "/home"}},
    }
    with pytest.raises(
        JobNotImportable, match=r'workload\.dataset\.path: got "/home", expected s3://'
    ):
        import_job(job_of(InputDataConfig=[channel]), DECISIONS)


class Bucket:
    """An S3 client that holds two files."""

    def __init__(self, **files: bytes) -> None:
        self.files = files

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        assert Bucket == "your-bucket"
        return {"Body": io.BytesIO(self.files[Key.rpartition("/")[2].partition(".")[0]])}


def files(source_code: Any, distributed: Any = None) -> Any:
    """What the SDK 3 uploads for a trainer."""
    return Bucket(
        sourcecode=json.dumps(source_code).encode(),
        distributed=json.dumps(distributed or {}).encode(),
    )


def test_a_job_of_the_sdk_3_is_read_from_its_drivers() -> None:
    captured = CAPTURED["torchrun-2-nodes-kept-alive"]
    job = description(captured["request"])
    trainer = captured["trainer"]
    described = import_described(
        job, DECISIONS, s3=files(trainer["source_code"], trainer["distributed"])
    )
    suite = parse_suite(described.document)
    assert suite.workload.entry_point == "train.py"
    # never a path of the machine that made the job: this one would send what is there
    assert suite.workload.source == "code-of-v3-20261121000000"
    assert described.left_out["workload.source"].endswith(
        "aws s3 cp --recursive s3://your-bucket/v3/v3-20261121000000/input/code "
        "code-of-v3-20261121000000"
    )
    assert suite.training["strategy"] == "ddp"


@pytest.mark.parametrize("name", ["../../home", "a b", "/etc"])
def test_the_folder_for_a_jobs_code_is_below_the_suites(name: str) -> None:
    described = import_described(
        {**JOBS["sdk 3"], "TrainingJobName": name}, DECISIONS, s3=files(SOURCE_CODE)
    )
    assert re.fullmatch(r"code-of-[a-z-]+", described.document["workload"]["source"])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            b'{"source_dir": ["a"], "entry_script": "a.py"}',
            r"expected a source_dir and a \.py file in it",
        ),
        (b'{"source_dir": "a", "entry_script": 3}', r"expected a source_dir and a \.py file in it"),
        *(
            (pickled, r"sourcecode\.json")
            for pickled in (b"\x80\x04K\x01.", b"[1]", b"{", b"[" * 100_000)
        ),
        (b" " * MOST_BYTES + b"{}", r"sourcecode\.json"),
    ],
)
def test_damaged_drivers_are_refused(content: bytes, words: str) -> None:
    with pytest.raises(JobNotImportable, match=words):
        import_described(JOBS["sdk 3"], DECISIONS, s3=Bucket(sourcecode=content, distributed=b"{}"))  # type: ignore[arg-type]


def test_neighbours_are_other_types_with_a_like_accelerator() -> None:
    for name in instance_types():
        near = neighbours(name)
        assert name not in near
        assert len(set(near)) == len(near) <= 5
        assert len({instance_types()[instance].accelerator_kind for instance in (name, *near)}) == 1
    assert neighbours("local.cpu") == []


def test_axes_are_the_neighbours_and_batch_sizes() -> None:
    job = job_of()
    job["HyperParameters"] |= {"per_device_batch-size": "16", "batch_size_name": '"a"'}
    axes = suggest_axes(import_job(job, DECISIONS).document)
    assert axes["instance"][:2] == ["ml.g5.xlarge", "ml.g5.2xlarge"]
    assert "ml.g6.xlarge" in axes["instance"]
    assert axes["hyperparameters.per_device_batch-size"] == [16, 8, 32]
    assert axes.keys() == {"instance", "hyperparameters.per_device_batch-size"}


JOBS = {
    "sdk 2": job_of(Environment={"A": "1"}),
    "sdk 3": description(CAPTURED["basic"]["request"]),
    "built-in": description(first_request(small_suite())),
}


def told(suite: ImportedSuite) -> str:
    return json.dumps([suite.document, suite.missing, dict(suite.left_out)]) + repr(
        suite.differences
    )


@pytest.mark.parametrize(("name", "value"), NAMED)
def test_both_importers_leave_out_names_and_values_of_secrets(name: str, value: str) -> None:
    job = job_of()
    job["Environment"] = {**job.get("Environment", {}), "KEPT": "1", name: value}
    job["HyperParameters"] |= {
        "kept": "1",
        name: json.dumps(value),
        f"a_{name}": json.dumps({name: [value]}),
    }
    given = {"kept": 1, name: value, f"a_{name}": {name: [value]}}
    trainer = trainer_of("basic", environment={"KEPT": "1", name: value}, hyperparameters=given)
    for imported_suite in (
        import_described(job, DECISIONS, s3=files(SOURCE_CODE)),
        from_model_trainer(trainer, DECISIONS),
    ):
        workload = parse_suite(imported_suite.document).workload
        assert workload.environment.items() >= {"KEPT": "1"}.items()
        assert "kept" in workload.hyperparameters
        assert {
            f"Environment.{name}",
            f"HyperParameters.{name}",
            f"HyperParameters.a_{name}",
        } <= imported_suite.left_out.keys()
        assert name not in workload.environment.keys() | workload.hyperparameters.keys()
        assert value not in told(imported_suite)


def test_values_without_secrets_are_kept() -> None:
    job = job_of(Environment=dict(NO_SECRETS))
    job["HyperParameters"] |= {name: json.dumps(value) for name, value in NO_SECRETS.items()}
    imported_suite = import_described(job, DECISIONS, s3=files(SOURCE_CODE))
    assert imported_suite.left_out == {}
    assert imported_suite.document["workload"]["environment"] == NO_SECRETS
    assert imported_suite.document["workload"]["hyperparameters"].items() >= NO_SECRETS.items()


def planted(value: Any) -> Iterator[Any]:
    """Copies of the document, each with the secret at another place, also inside the JSON text of a
    hyperparameter.
    """
    for path, text in list(texts_of(value)):
        for secret in (PLANTED, *([with_secret(text)] if text.startswith("{") else [])):
            copy = deepcopy(value)
            place = copy
            for part in path[:-1]:
                place = place[part]
            place[path[-1]] = secret
            yield copy


def texts_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:
    if isinstance(value, str):
        yield path, value
    parts = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, inner in parts:
        yield from texts_of(inner, (*path, name))


def with_secret(text: str) -> str:
    return json.dumps({**json.loads(text), "environment": {"DB_PASSWD": "the-password"}})


def said(document: Any, make: Callable[[Any], ImportedSuite]) -> list[str]:
    """Of the suite or the refusal, for each place that the secret has in the document."""
    texts = []
    for changed in planted(document):
        try:
            texts.append(told(make(changed)))
        except JobNotImportable as error:
            texts.append(f"refused: {error}")
    assert [text for text in texts if "the-password" in text] == []
    return texts


@pytest.mark.parametrize("kind", sorted(JOBS))
def test_a_secret_at_any_place_of_a_job_is_in_no_result_and_no_message(kind: str) -> None:
    texts = said(JOBS[kind], lambda job: import_described(job, DECISIONS, s3=files(SOURCE_CODE)))
    assert {"not repeated" in text for text in texts} == {True, False}


def test_a_secret_in_the_files_of_the_drivers_is_in_no_result_and_no_message() -> None:
    texts = said(
        SOURCE_CODE, lambda code: import_described(JOBS["sdk 3"], DECISIONS, s3=files(code))
    )
    assert texts
    assert all(text.startswith("refused: ") and "source_code." in text for text in texts)


@pytest.mark.parametrize("name", ["basic", "channels", "network"])
def test_a_secret_at_any_place_of_a_trainer_is_in_no_result_and_no_message(name: str) -> None:
    trainer = {key: value for key, value in CAPTURED[name]["trainer"].items() if key != "class"}
    trainer["tags"] = [{"key": "db_password", "value": "hunter2!"}]
    assert "hunter2!" not in told(from_model_trainer(as_object(trainer), DECISIONS))
    assert said(trainer, lambda changed: from_model_trainer(as_object(changed), DECISIONS))


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "imported.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("text", TRICKY)
def test_text_of_a_job_stays_text_in_the_file(text: str, tmp_path: Path) -> None:
    imported_suite = import_job(job_of(Environment={"A": text}), DECISIONS)
    document = read_suite_text(written(tmp_path, suite_text(imported_suite, {}))).document
    assert document == imported_suite.document
    assert document["workload"]["environment"] == {"A": text}


def test_the_file_is_a_suite_and_its_axes_are_comments(tmp_path: Path) -> None:
    imported_suite = import_job(job_of(), DECISIONS)
    axes = suggest_axes(imported_suite.document)
    text = suite_text(imported_suite, axes)
    suite = load_suite(written(tmp_path, text)).suite
    assert dict(suite.matrix) == {}
    assert "# Axes to try" in text
    block = "".join(
        line.removeprefix("# ") for line in text.partition("# matrix")[2].splitlines(keepends=True)
    )
    assert yaml.safe_load(f"matrix{block}")["matrix"] == axes


def test_decisions_of_a_person_are_asked_for_until_given(snapshot: Snapshot) -> None:
    open_paths = ("workload.examples", "limits.max_usd", "limits.max_hours")
    for imported_suite in (
        import_job(job_of(), Decisions()),
        from_model_trainer(trainer_of("basic")),
    ):
        assert imported_suite.missing == open_paths
        snapshot(suite_text(imported_suite, {}))
        snapshot(list(notes(imported_suite)))
    assert imported("basic").missing == ()


def test_a_new_file_is_written_and_nothing_is_ever_replaced(tmp_path: Path) -> None:
    kept = written(tmp_path, "mine")
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    for name, words in {
        "imported.yaml": "exists, expected the name of a new file",
        "link": "exists, expected the name of a new file",
        "imported.yaml/suite.yaml": "expected a file in a folder that exists",
        f"{'x' * 300}/suite.yaml": "expected a file in a folder that exists",
        "x" * 300: "can't be written",
    }.items():
        with pytest.raises(BadParameter, match=words):
            write_new(tmp_path / name, "x", "--output")
    write_new(tmp_path / "new.yaml", "é", "--output")
    assert (tmp_path / "new.yaml").read_bytes() == "é".encode()
    assert kept.read_text() == "mine"
    assert sorted(tmp_path.iterdir()) == [kept, tmp_path / "link", tmp_path / "new.yaml"]
