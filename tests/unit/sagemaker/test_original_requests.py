"""Each cell of the original suites asks for the job that the SageMaker SDK asks for, field by
field.
"""

import json
import re
from copy import deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.unit.sagemaker.test_request import SETTINGS, model_problems
from traindyno.api.suite_loading import load_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.sagemaker.request import build_training_job_request

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests/data/golden"
PACKS = ("albert-scaling", "bert-trainium", "gpt2-compiler", "gptj-parallel")
REGEX = "MetricDefinitions[].Regex"
# The differences that are allowed, with their reason. Everything else must be equal.
ALLOWED = {
    "TrainingJobName": "a name",
    "HyperParameters.sagemaker_job_name": "a name",
    "HyperParameters.sagemaker_program": "a name: our script's file",
    "HyperParameters.sagemaker_submit_directory": "a bucket: our script's tarball",
    "RoleArn": "a role",
    "OutputDataConfig.S3OutputPath": "a bucket",
    "DebugHookConfig.S3OutputPath": "a bucket",
    "InputDataConfig[].S3Uri": "a bucket: compared without its name",
    "CheckpointConfig": "a bucket: SageMaker copies the step log there",
    "Environment": "our variables: the step log's folder and the run's id",
    "Tags": "tags",
    "ExperimentConfig": "names: one notebook groups its jobs",
    "StoppingCondition": "the bounds of time that keep the suite's cap on money",
    REGEX: "gpt2-compiler only: the post's expressions read 6.25 from 6.25e-05",
}


def comparable(request: dict[str, Any], *, with_regex: bool) -> dict[str, Any]:
    """The request without what ALLOWED names; of channels, the address without its bucket."""
    rest = deepcopy(request)
    rest["MetricDefinitions"] = rest["AlgorithmSpecification"].pop("MetricDefinitions", [])
    for channel in rest.get("InputDataConfig", ()):
        source = channel["DataSource"]["S3DataSource"]
        channel["path"] = source["S3Uri"].split("/", 3)[3]
        channel["S3Uri"] = source.pop("S3Uri")
    for path in ALLOWED:
        if path != REGEX or not with_regex:
            remove(rest, path)
    return rest


def remove(request: dict[str, Any], path: str) -> None:
    """Removes ``A``, a field, ``A.b``, a field of it, or ``A[].b``, a field of each of its
    elements.
    """
    name, _, inner = path.partition(".")
    if not inner:
        request.pop(name, None)
        return
    parts = request.get(name.removesuffix("[]"), {})
    for part in parts if name.endswith("[]") else [parts]:
        part.pop(inner, None)


@cache
def our_requests(pack: str) -> tuple[dict[str, Any], ...]:
    suite = load_suite(ROOT / "suites" / pack / "original.yaml").suite
    suite = replace(
        suite,
        workload=replace(
            suite.workload,
            source="s3://results/code/abababababababababababababababababababababababababababababababab/sourcedir.tar.gz",
        ),
    )
    runs = trial_runs("execution-1", suite.cells, [1])
    return tuple(
        build_training_job_request(run, suite, attempt=1, settings=SETTINGS) for run in runs
    )


@pytest.mark.parametrize("pack", PACKS)
def test_the_cells_of_an_original_suite_are_the_sdks_jobs(pack: str) -> None:
    """One cell for each job that the post describes, captured by capture_originals.py, and no
    others.
    """
    captured = json.loads((GOLDEN / f"originals/{pack}.json").read_text())
    with_regex = pack != "gpt2-compiler"
    ours = [comparable(request, with_regex=with_regex) for request in our_requests(pack)]
    missing = [
        name for name, job in captured.items() if comparable(job, with_regex=with_regex) not in ours
    ]
    assert missing == []
    assert len(ours) == len(captured)


@pytest.mark.parametrize("pack", PACKS)
def test_the_requests_are_within_sagemakers_limits(pack: str) -> None:
    assert [problem for request in our_requests(pack) for problem in model_problems(request)] == []


@pytest.mark.parametrize(
    ("pack", "name"),
    [
        ("gpt2-compiler", "v2.219.0/seed000_gpt2_native_pytorchddp"),
        ("gpt2-compiler", "seed000_gpt2_trcomp_pytorchxla"),
        ("gptj-parallel", "seed001_gptj_smp_v1_tensor_parallel"),
        ("bert-trainium", "seed003_bert_p4d_torch_distributed"),
        ("bert-trainium", "seed003_bert_trn1_torch_distributed"),
        ("albert-scaling", "v2.219.0/seed002_albert_ddp_2n"),
        ("albert-scaling", "v2.219.0/seed002_albert_ddp_4n"),
        ("albert-scaling", "v2.219.0/seed002_albert_ddp_16n"),
    ],
)
def test_a_cell_is_the_authors_own_job(pack: str, name: str) -> None:
    """The request was captured from the posts' and notebooks' own code."""
    golden = json.loads((GOLDEN / f"{name}.json").read_text())["request"]
    with_regex = pack != "gpt2-compiler"
    wanted = comparable(golden, with_regex=with_regex)
    assert wanted in [comparable(request, with_regex=with_regex) for request in our_requests(pack)]


def test_the_pipeline_cell_gives_the_library_the_authors_parameters() -> None:
    """Their pipeline notebook has a script and arguments of its own; the library's parameters are
    the experiment.
    """
    golden = json.loads((GOLDEN / "seed001_gptj_smp_v1_pipeline_parallel.json").read_text())[
        "request"
    ]
    wanted = golden["HyperParameters"]["mp_parameters"]
    assert wanted in [
        request["HyperParameters"]["mp_parameters"] for request in our_requests("gptj-parallel")
    ]


def test_the_corrected_expressions_read_whole_numbers() -> None:
    metrics = our_requests("gpt2-compiler")[0]["AlgorithmSpecification"]["MetricDefinitions"]
    regex = {metric["Name"]: metric["Regex"] for metric in metrics}
    line = "{'loss': 3.1, 'learning_rate': 6.25e-05, 'epoch': 1.0}"
    assert re.findall(regex["learning_rate"], line) == ["6.25e-05"]
    assert re.findall(regex["train_loss"], line) == ["3.1"]
    # transformers 5 prints numbers as text
    assert re.findall(regex["train_loss"], "{'loss': '2.1', 'epoch': '1.0'}") == ["2.1"]
