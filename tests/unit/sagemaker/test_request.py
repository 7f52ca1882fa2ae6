"""Our CreateTrainingJob requests against the SDK's own, captured in tests/data/golden, and
botocore's service model.
"""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from tests.unit.suites import script_document, small_document, small_suite
from traindyno.core.errors import SuiteInvalid
from traindyno.core.instances.instance_types import efa_environment, instance_types
from traindyno.core.lab_names import jobs_prefix
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs, with_seeds
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.job_names import attempt_job_name, job_name_prefix
from traindyno.sagemaker.job_settings import JobSettings, LabJobs
from traindyno.sagemaker.launcher import SourceMissing
from traindyno.sagemaker.request import STAY_VARIABLE, build_training_job_request

GOLDEN = Path(__file__).parents[2] / "data/golden"
SETTINGS = JobSettings(
    region="us-east-1",
    role_arn="arn:aws:iam::123456789012:role/SageMakerExecutionRole",
    results_bucket="results",
    source_s3_uri="s3://results/code/abababababababababababababababababababababababababababababababab/sourcedir.tar.gz",
)
# Options that a person gives to a launcher, as hyperparameters of a script.
GIVEN_OPTIONS = (
    "sagemaker_mpi_custom_mpi_options",
    "sagemaker_distributed_dataparallel_custom_mpi_options",
)
SERVICE = botocore.session.get_session().get_service_model("sagemaker")
MODEL = SERVICE.shape_for("CreateTrainingJobRequest")
# What sagemaker-training 5.1.1 sets FI_EFA_USE_DEVICE_RDMA for, with FI_PROVIDER.
TOOLKITS_RDMA = {"ml.p4d.24xlarge", "ml.p4de.24xlarge", "ml.trn1.32xlarge", "ml.p6e-gb200.36xlarge"}
KEY = "arn:aws:kms:us-east-1:123456789012:key/1"
JOBS_OF_MOST_VARIABLES: dict[str, dict[str, Any]] = {
    "a built-in task": {"task": "causal-lm"},
    "a script": {},
    "spot": {"task": "causal-lm", "purchase": "spot"},
    "checkpoints": {"task": "causal-lm", "measurement": {"checkpoint_every_steps": 10}},
    "two instances": {"training": {"instance_count": 2}},
    "EFA": {
        "training": {"instance_count": 2},
        "matrix": {"instance": ["ml.g6e.12xlarge", "ml.g5.12xlarge"]},
    },
    "EFA with RDMA": {
        "task": "causal-lm",
        "training": {"instance": "ml.p5en.48xlarge", "instance_count": 2},
    },
    "EFA in one cell": {
        "task": "causal-lm",
        "training": {"instance": "ml.p5en.48xlarge"},
        "matrix": {"instance_count": [1, 2]},
    },
    "everything": {"training": {"instance_count": 2}, "matrix": {"instance": ["ml.p5en.48xlarge"]}},
}


def first_request(suite: Suite, **jobs: Any) -> dict[str, Any]:
    """The first request of a suite, with fields of LabJobs."""
    return build_training_job_request(
        trial_runs("execution-1", suite.cells, [1])[0],
        suite,
        attempt=1,
        settings=replace(SETTINGS, jobs=LabJobs(**jobs)),
    )


def limit_problems(value: Any, shape: Any, path: str = "") -> list[str]:
    """What botocore knows about lengths, ranges and patterns, but does not check."""
    limits = shape.metadata
    problems = []
    if shape.type_name == "structure":
        return [
            p
            for name, inner in value.items()
            for p in limit_problems(inner, shape.members[name], f"{path}.{name}")
        ]
    if shape.type_name == "list":
        problems = [p for item in value for p in limit_problems(item, shape.member, f"{path}[]")]
    if shape.type_name == "map":
        problems = [p for key in value for p in limit_problems(key, shape.key, f"{path} key")]
        problems += [
            p
            for key, item in value.items()
            for p in limit_problems(item, shape.value, f"{path}.{key}")
        ]
    size = (
        value
        if shape.type_name in ("integer", "long")
        else len(value)
        if hasattr(value, "__len__")
        else 0
    )
    if not limits.get("min", size) <= size <= limits.get("max", size):
        problems.append(f"{path}: {size} is not within {limits}")
    if "pattern" in limits and not re.fullmatch(
        limits["pattern"].replace(r"\p{L}\p{Z}\p{N}", r"\w\s"), str(value)
    ):
        problems.append(f"{path}: {value!r} does not match {limits['pattern']}")
    if limits.get("enum") and value not in limits["enum"]:
        problems.append(f"{path}: {value!r} is not one of the model's")
    return problems


def model_problems(request: dict[str, Any]) -> list[str]:
    report = ParamValidator().validate(request, MODEL)
    return [report.generate_report()] if report.has_errors() else limit_problems(request, MODEL)


def golden_suite(golden: dict[str, Any], **training: Any) -> Suite:
    """The suite that asks for a golden request's job."""
    own = {
        name: text if name == "mp_parameters" else json.loads(text)
        for name, text in golden["HyperParameters"].items()
        if name in GIVEN_OPTIONS or not name.startswith("sagemaker_")
    }
    resources = golden["ResourceConfig"]
    workload = {
        "task": "script",
        "source": json.loads(golden["HyperParameters"]["sagemaker_submit_directory"]),
        "entry_point": json.loads(golden["HyperParameters"]["sagemaker_program"]),
        "hyperparameters": own,
        "image": golden["AlgorithmSpecification"]["TrainingImage"],
        "examples": 1,
    }
    for channel in golden.get("InputDataConfig", []):
        uri = channel["DataSource"]["S3DataSource"]["S3Uri"]
        mode = {"input_mode": channel["InputMode"]} if "InputMode" in channel else {}
        further = (
            {} if channel["ChannelName"] == "train" else {"channels": {channel["ChannelName"]: uri}}
        )
        workload |= further or {"dataset": {"path": uri, **mode}}
    return parse_suite(
        script_document(
            workload=workload,
            training={"instance_count": resources["InstanceCount"], **training},
            matrix={"instance": [resources["InstanceType"]]},
            limits={
                "max_usd": 1,
                "max_hours": 48,
                "max_job_seconds": golden["StoppingCondition"]["MaxRuntimeInSeconds"],
            },
        )
    )


def in_our_place(golden: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    """The golden request with what the lab names, bounds and adds itself: the rest must be
    equal.
    """
    request = {
        name: value
        for name, value in golden.items()
        if name not in ("MetricDefinitions", "DebugHookConfig")
    }
    request["AlgorithmSpecification"] = {
        name: value
        for name, value in request["AlgorithmSpecification"].items()
        if name != "MetricDefinitions"
    }
    name = ours["TrainingJobName"]
    request["TrainingJobName"] = name
    request["HyperParameters"] = {
        **request["HyperParameters"],
        "sagemaker_job_name": json.dumps(name),
    }
    request["OutputDataConfig"] = {
        "S3OutputPath": "s3://results/runs/execution-1/" + run_id(ours) + "/output/"
    }
    request["CheckpointConfig"] = {
        "S3Uri": "s3://results/runs/execution-1/" + run_id(ours) + "/checkpoints/"
    }
    request["StoppingCondition"] = {**request["StoppingCondition"], "MaxPendingTimeInSeconds": 7200}
    request["Environment"] = {
        "TRAINDYNO_STEP_LOG_DIRECTORY": "/opt/ml/checkpoints/step_log",
        "TRAINDYNO_RUN_ID": run_id(ours),
        "TRAINDYNO_CHECKPOINT_DIRECTORY": "/opt/ml/checkpoints/state",
    }
    request["Tags"] = [
        {"Key": "traindyno:lab", "Value": "traindyno"},
        {"Key": "traindyno:suite", "Value": "quick-look"},
        {"Key": "traindyno:execution", "Value": "execution-1"},
        {"Key": "traindyno:run", "Value": run_id(ours)},
    ]
    return request


def run_id(request: dict[str, Any]) -> str:
    cell_id, trial, _ = request["TrainingJobName"].rsplit("-", 2)
    return f"{cell_id[-8:]}-{trial}"


@pytest.mark.parametrize(
    ("name", "training"),
    [
        ("modern_torch_distributed_amzn2023_image", {"strategy": "ddp"}),
        ("modern_torch_distributed_g5_12xl", {"strategy": "ddp"}),
        ("modern_torch_distributed_p5_2n", {"strategy": "fsdp"}),
        ("modern_trn1_neuronx_image", {"strategy": "ddp", "compiler": "xla"}),
        ("modern_none_single_gpu", {"strategy": "single"}),
        ("seed002_albert_smddp_2n", {"strategy": "smddp"}),
        ("seed002_albert_smddp_pt2_2n", {"strategy": "smddp"}),
        ("seed002_albert_smddp_custom_image_2n", {"strategy": "smddp"}),
        ("seed001_gptj_smp_v1_pipeline_parallel", {"strategy": "pipeline"}),
        ("v2.219.0/seed003_bert_p4d_pytorchddp", {"strategy": "ddp"}),
    ],
)
def test_the_request_equals_the_sdks_own(name: str, training: dict[str, Any]) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text())["request"]
    golden["ResourceConfig"].pop(
        "KeepAlivePeriodInSeconds", None
    )  # a suite keeps no instances warm
    ours = first_request(
        golden_suite(golden, **training), volume_size_gb=golden["ResourceConfig"]["VolumeSizeInGB"]
    )
    # The SDK leaves it to the toolkit, whose version in the images does not know every type.
    ours["Environment"] = {
        key: text for key, text in ours["Environment"].items() if not key.startswith("FI_")
    }
    assert ours == in_our_place(golden, ours)
    assert model_problems(ours) == []


def test_a_built_in_task_gets_the_suites_own_words_as_json() -> None:
    request = first_request(small_suite())
    told = {name: json.loads(text) for name, text in request["HyperParameters"].items()}
    assert told["run_id"] == run_id(request)
    assert told["workload"]["model"] == {"config": {"model_type": "gpt2", "n_layer": 2}}
    assert told["settings"]["instance"] == "ml.g5.xlarge"
    assert told["version"] == 1
    assert told["measurement"] == {
        "trials": 2,
        "max_steps": 200,
        "evaluate": False,
        "save_model": False,
        "save_dtype": "checkpoint",
        "save_best": False,
    }
    assert told["sagemaker_program"] == "traindyno_train.py"
    assert (
        told["sagemaker_submit_directory"]
        == "s3://results/code/abababababababababababababababababababababababababababababababab/sourcedir.tar.gz"
    )
    assert model_problems(request) == []


def test_a_built_in_task_gets_its_ending_target() -> None:
    goal = {"cheapest-to": {"accuracy": 0.9}}
    request = first_request(small_suite(goal=goal, measurement={"evaluate_every_steps": 50}))
    assert json.loads(request["HyperParameters"]["target"]) == {"quality": "accuracy", "value": 0.9}
    assert "target" not in first_request(small_suite())["HyperParameters"]


def test_a_script_gets_the_users_hyperparameters_and_the_cells_and_no_others() -> None:
    suite = parse_suite(
        script_document(matrix={"instance": ["ml.g5.xlarge"], "hyperparameters.lr": [0.001, 0.01]})
    )
    told = first_request(suite)["HyperParameters"]
    own = {name: text for name, text in told.items() if not name.startswith("sagemaker_")}
    assert own == {"model": '"gpt2"', "epochs": "1", "lr": "0.001", "bf16": "true"}


def test_spot_waits_for_the_run_and_the_capacity_together() -> None:
    request = first_request(small_suite(purchase="spot"))
    assert request["EnableManagedSpotTraining"] is True
    # 1800 s of running and 7200 s (the default) of waiting
    assert request["StoppingCondition"] == {
        "MaxRuntimeInSeconds": 1800,
        "MaxWaitTimeInSeconds": 9000,
    }
    assert model_problems(request) == []


def test_only_the_containers_of_spot_jobs_stay_after_they_were_told_to_end() -> None:
    """SageMaker kills a container 120 s after SIGTERM."""
    spot = first_request(small_suite(purchase="spot"))["Environment"]
    on_demand = first_request(small_suite())["Environment"]
    assert spot[STAY_VARIABLE] == "115"
    assert STAY_VARIABLE not in on_demand


@pytest.mark.parametrize("instance", ["ml.m5.xlarge", "local.cpu", "local.gpu"])
def test_only_aws_accelerators_get_a_pending_limit(instance: str) -> None:
    request = first_request(small_suite(training={"instance": instance}))
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 1800}


@pytest.mark.parametrize(
    ("changes", "keeps"),
    [
        ({}, False),
        ({"purchase": "spot"}, True),
        ({"measurement": {"checkpoint_every_steps": 50}}, True),
    ],
)
def test_a_job_keeps_checkpoints_on_spot_or_at_the_suites_request(
    changes: dict[str, Any], keeps: bool
) -> None:
    environment = first_request(small_suite(**changes))["Environment"]
    assert environment.get("TRAINDYNO_CHECKPOINT_DIRECTORY") == (
        "/opt/ml/checkpoints/state" if keeps else None
    )


def test_efa_is_set_up_for_several_instances_without_the_toolkits_own() -> None:
    two = first_request(small_suite(training={"instance": "ml.g6e.12xlarge", "instance_count": 2}))
    assert two["Environment"]["FI_PROVIDER"] == "efa"
    # libfabric refuses to start where RDMA is asked for and the type has none
    assert "FI_EFA_USE_DEVICE_RDMA" not in two["Environment"]
    assert (
        "FI_PROVIDER"
        not in first_request(small_suite(training={"instance": "ml.g6e.12xlarge"}))["Environment"]
    )


@pytest.mark.parametrize(
    "name",
    sorted(
        instance_type.name for instance_type in instance_types().values() if instance_type.has_rdma
    ),
)
def test_several_instances_of_a_type_with_rdma_use_it(name: str) -> None:
    compilers = ["xla" if ".trn" in name else "none"]
    request = first_request(
        small_suite(
            training={"instance": name, "instance_count": 2},
            matrix={"compiler": compilers},
            baseline={"compiler": compilers[0]},
        )
    )
    asked = {key: value for key, value in request["Environment"].items() if key.startswith("FI_")}
    expected = (
        {} if name in TOOLKITS_RDMA else {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}
    )
    assert asked == expected


def test_a_local_job_runs_the_local_image_with_torchrun() -> None:
    request = first_request(small_suite(training={"instance": "local.cpu", "instance_count": 2}))
    assert request["AlgorithmSpecification"] == {
        "TrainingInputMode": "File",
        "TrainingImage": "local",
    }
    assert request["HyperParameters"]["sagemaker_torch_distributed_enabled"] == "true"
    assert request["StoppingCondition"] == {"MaxRuntimeInSeconds": 1800}


def test_model_and_tokenizer_in_s3_come_as_channels() -> None:
    workload = {
        **small_document()["workload"],
        "model": "s3://bucket/model/",
        "tokenizer": {"path": "s3://bucket/tok/"},
    }
    channels = first_request(small_suite(workload=workload))["InputDataConfig"]
    places = {
        channel["ChannelName"]: channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in channels
    }
    assert places == {
        "train": "s3://bucket/data/abc/",
        "model": "s3://bucket/model/",
        "tokenizer": "s3://bucket/tok/",
    }


def test_a_tokenizer_alone_comes_through_the_models_channel() -> None:
    workload = {**small_document()["workload"], "tokenizer": {"path": "s3://bucket/tok/"}}
    channels = first_request(small_suite(workload=workload))["InputDataConfig"]
    assert [channel["ChannelName"] for channel in channels] == ["train", "model"]


def test_data_streamed_by_the_loader_has_no_channel() -> None:
    dataset = {"path": "s3://bucket/data/abc/", "input_mode": "stream"}
    suite = small_suite(workload={**small_document()["workload"], "dataset": dataset})
    assert "InputDataConfig" not in first_request(suite)


def test_unstaged_code_is_named() -> None:
    workload = {**script_document()["workload"], "source": "./scripts"}
    suite = parse_suite(script_document(workload=workload))
    with pytest.raises(SourceMissing, match=r"its code is \./scripts, expected s3://"):
        first_request(suite)


def test_a_job_name_is_the_same_for_a_repeated_call_and_new_for_the_next_attempt() -> None:
    suite = small_suite(name="a-very-long-suite-name-that-must-be-cut")
    run = trial_runs("execution-1", suite.cells, [12])[0]
    first = attempt_job_name(run, suite.name, attempt=1, lab="traindyno")
    # sha1("execution-1") begins 6ea0ec8c... ; the suite's first 15 characters are "a-very-long-sui"
    assert first == attempt_job_name(run, suite.name, attempt=1, lab="traindyno")
    assert first.startswith("traindyno--a-very-long-sui-")
    assert first.endswith(f"-{run.cell.cell_id}-t12-a1")
    assert attempt_job_name(run, suite.name, attempt=2, lab="traindyno").endswith("-a2")


def test_no_labs_jobs_begin_as_another_labs_do() -> None:
    """Permissions and event rules go by this prefix."""
    labs = ["a", "a-b", "a-b-c", "ab"]
    names = {lab: job_name_prefix("execution-1", "quick-look", lab=lab) for lab in labs}
    for lab in labs:
        assert [other for other in labs if names[other].startswith(jobs_prefix(lab))] == [lab]
    # the longest: lab of 18 and suite name of 15 characters, trial and attempt of up to three
    # digits each
    suite = small_suite(name="a-very-long-suite-name")
    run = trial_runs("execution-1", suite.cells, [999])[0]
    name = attempt_job_name(run, suite.name, attempt=999, lab="l" * 18)
    assert re.fullmatch(r"[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}", name)


@pytest.mark.parametrize(
    ("instance", "has_key"), [("ml.m5.xlarge", True), ("ml.p4d.24xlarge", False)]
)
def test_a_volume_key_is_left_out_on_instances_with_storage_of_their_own(
    instance: str, has_key: bool
) -> None:
    """SageMaker refuses the key there: the hardware encrypts instance storage."""
    request = first_request(small_suite(training={"instance": instance}), volume_key_arn=KEY)
    assert ("VolumeKmsKeyId" in request["ResourceConfig"]) is has_key


def test_tags_of_the_lab_are_added_to_every_job() -> None:
    assert {"Key": "team", "Value": "vision"} in first_request(
        small_suite(), tags={"team": "vision"}
    )["Tags"]


@pytest.mark.parametrize("name", sorted(JOBS_OF_MOST_VARIABLES))
def test_a_job_has_as_many_variables_as_the_service_takes(name: str) -> None:
    """The largest number that the check accepts, with the lab's own, is 100 in the requests of the
    suite's jobs.
    """
    changes = dict(JOBS_OF_MOST_VARIABLES[name])
    document = small_document() if changes.pop("task", None) else script_document()
    document = {
        **document,
        **{key: merged(document.get(key), value) for key, value in changes.items()},
    }

    def check(count: int) -> Suite:
        workload = {
            **document["workload"],
            "environment": {f"n{index}": "1" for index in range(count)},
        }
        return parse_suite({**document, "workload": workload})

    with pytest.raises(SuiteInvalid) as refused:
        check(100)
    (problem,) = refused.value.problems
    match = re.match(
        r"got 100 names, expected at most (\d+): a job has at most 100", problem.message
    )
    assert match
    most = int(match[1])
    suite = check(most)
    with pytest.raises(SuiteInvalid, match=f"got {most + 1} names"):
        check(most + 1)
    runs = with_seeds(suite, trial_runs("execution-1", suite.cells, range(1, 2)))
    requests = [
        build_training_job_request(run, suite, attempt=1, settings=SETTINGS) for run in runs
    ]
    assert max(len(request["Environment"]) for request in requests) == 100


def merged(before: Any, value: Any) -> Any:
    return {**before, **value} if isinstance(before, dict) and isinstance(value, dict) else value


@pytest.mark.parametrize("name", sorted(instance_types()))
def test_efa_is_named_on_sizes_with_it_only(name: str) -> None:
    instance = instance_types()[name]
    assert efa_environment(instance, 1) == {}
    assert not efa_environment(instance, 2) or instance.has_efa
    assert instance.has_efa or not instance.has_rdma
