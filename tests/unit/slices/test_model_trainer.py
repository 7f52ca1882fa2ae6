"""Suites from ModelTrainers of the SageMaker SDK 3, against the requests that the SDK itself makes of them.

capture_model_trainer.py recorded both; the SDK 3 and the pinned SDK 2 can't share an environment.
"""

import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.slices.imported.job import JobNotImportable
from traindyno.slices.imported.model_trainer import from_model_trainer
from traindyno.slices.imported.suite_of_job import Decisions, ImportedSuite, base_request, comparable, differences_of

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
# What v3 adds to each job, and the lab to each of its own: all other differences are listed below by trainer.
ALWAYS = {
    *("TrainingJobName", "RoleArn", "Tags", "OutputDataConfig", "CheckpointConfig", "ProfilerConfig"),
    *("HyperParameters", "Environment", "InputDataConfig.code", "InputDataConfig.sm_drivers"),
    *("AlgorithmSpecification.ContainerEntrypoint", "AlgorithmSpecification.ContainerArguments"),
    *("AlgorithmSpecification.EnableSageMakerMetricsTimeSeries", "StoppingCondition.MaxPendingTimeInSeconds"),
}
FURTHER = {
    "channels": {
        "InputDataConfig.validation.DataSource.S3DataSource.S3DataDistributionType",
        "InputDataConfig.files",  # on FSx for Lustre, which no suite names
    },
    "network": {"VpcConfig", "EnableInterContainerTrafficEncryption"},
    "metrics": {"RemoteDebugConfig"},
    "torchrun-2-nodes-kept-alive": {"ResourceConfig.KeepAlivePeriodInSeconds"},
    "model-parallel": {"Arguments.--mp_parameters"},
}
EFA = {"FI_PROVIDER": "efa", "FI_EFA_USE_DEVICE_RDMA": "1"}


def trainer_of(name: str, **changes: Any) -> Any:
    """An object with the attributes of the recorded trainer."""
    return as_object({**CAPTURED[name]["trainer"], **changes})


def as_object(value: Any, name: str = "") -> Any:
    if isinstance(value, dict) and name not in MAPPINGS:
        kind = type(value.get("class", "Namespace"), (SimpleNamespace,), {})
        return kind(**{key: as_object(inner, key) for key, inner in value.items() if key != "class"})
    return [as_object(inner) for inner in value] if isinstance(value, list) else value


def imported(name: str, **changes: Any) -> ImportedSuite:
    return from_model_trainer(trainer_of(name, **changes), DECISIONS)


@pytest.mark.parametrize("name", IMPORTED)
def test_the_base_cells_job_is_the_sdks_own_but_for_what_is_listed(name: str) -> None:
    suite = parse_suite(imported(name).document)
    ours = comparable(base_request(suite), is_toolkit=True)
    theirs = comparable(CAPTURED[name]["request"], is_toolkit=False)
    assert ours["AlgorithmSpecification"]["TrainingImage"] == theirs["AlgorithmSpecification"]["TrainingImage"]
    kept = {"KeepAlivePeriodInSeconds"} & theirs["ResourceConfig"].keys()
    assert ours["ResourceConfig"] == {
        key: theirs["ResourceConfig"][key] for key in theirs["ResourceConfig"].keys() - kept
    }
    assert ours["StoppingCondition"].items() >= theirs["StoppingCondition"].items()
    assert ours.get("EnableManagedSpotTraining") == theirs.get("EnableManagedSpotTraining")
    if name != "channels":
        assert ours["InputDataConfig"] == {
            channel: value
            for channel, value in theirs["InputDataConfig"].items()
            if channel not in ("code", "sm_drivers")
        }
    own = {key: value for key, value in ours["Environment"].items() if not key.startswith("TRAINDYNO_")}
    assert own == theirs.get("Environment", {}) | {key: EFA[key] for key in own.keys() & EFA}
    if name != "model-parallel":
        assert ours["Arguments"] == theirs["Arguments"]


@pytest.mark.parametrize("name", IMPORTED)
def test_all_differences_from_the_sdks_request_are_listed_and_no_others(name: str) -> None:
    found = imported(name)
    recorded = differences_of(CAPTURED[name]["request"], parse_suite(found.document), is_toolkit=False)
    assert {each.path for each in found.differences} == {each.path for each in recorded}
    further = {each.path for each in found.differences if not each.path.startswith(tuple(ALWAYS))}
    assert further == FURTHER.get(name, set())
    assert {"InputDataConfig.code", "InputDataConfig.sm_drivers"} <= {each.path for each in found.differences}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_trainer_whose_job_no_suite_can_ask_for_is_refused(name: str) -> None:
    with pytest.raises(JobNotImportable) as error:
        imported(name)
    assert REFUSED[name] in str(error.value)


def test_arguments_are_written_as_the_drivers_write_them() -> None:
    """The drivers pass ``true`` where the toolkit would pass ``True``, so the suite holds the text."""
    arguments = imported("basic").document["workload"]["hyperparameters"]
    assert arguments["bf16"] == "true"
    assert arguments["layers"] == "1,2"
    assert (arguments["epochs"], arguments["lr"]) == (1, 5e-05)


def test_what_only_a_person_decides_is_missing_until_it_is_given() -> None:
    assert from_model_trainer(trainer_of("basic")).missing == (
        "workload.examples",
        "limits.max_usd",
        "limits.max_hours",
    )
    assert imported("basic").missing == ()


def test_options_of_the_drivers_that_the_toolkit_lacks_are_listed() -> None:
    assert imported("torchrun-4-of-8-processes").left_out == {
        "distributed.process_count_per_node": "4; the toolkit starts one for each of 8 devices"
    }
    code = {**CAPTURED["basic"]["trainer"]["source_code"], "requirements": "needs.txt"}
    assert "source_code.requirements" in imported("basic", source_code=code).left_out


def test_a_secret_in_the_environment_stays_out_of_the_suite() -> None:
    secret = "hf_" + "a" * 30
    found = imported("basic", environment={"A": "1", "HF_TOKEN": secret})
    assert found.document["workload"]["environment"] == {"A": "1"}
    assert "Environment.HF_TOKEN" in found.left_out
    assert secret not in json.dumps([found.document, dict(found.left_out)])
    assert secret not in repr(found.differences)


def test_channels_of_the_call_replace_those_of_the_trainer() -> None:
    given = SimpleNamespace(channel_name="train", data_source="s3://other/train/")
    found = from_model_trainer(trainer_of("channels"), DECISIONS, input_data_config=[given])
    assert found.document["workload"]["dataset"]["path"] == "s3://other/train/"
    assert sorted(found.document["workload"]["channels"]) == ["validation"]


def test_a_value_that_a_pipeline_fills_in_is_refused() -> None:
    class PipelineVariable:
        __slots__ = ()

    trainer = trainer_of("basic")
    trainer.training_image = PipelineVariable()
    with pytest.raises(JobNotImportable, match="got PipelineVariable, expected a value that is known before"):
        from_model_trainer(trainer)


def test_the_recorded_trainers_are_of_the_version_that_requirements_name() -> None:
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
