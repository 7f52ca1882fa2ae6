"""Objects of the SageMaker SDK: estimators become suites, and a recommended cell an estimator or a
trainer whose request is the lab's.
"""

import json
import subprocess
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.data.golden.capture_originals import PACKS, ROLE, Case, open_session
from tests.unit.sagemaker.test_original_requests import our_requests
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import script_document
from traindyno import Decisions, JobNotImportable, SdkJobRefused, Suite, from_estimator
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite as CheckedSuite
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.request import build_training_job_request
from traindyno.sagemaker.sdk_jobs import build_estimator, build_model_trainer
from traindyno.slices.imported.estimator import record
from traindyno.slices.imported.request_differences import NO_FIELD, base_request, comparable

ROOT = Path(__file__).parents[2]
SDK3 = ROOT / ".envs/model_trainer/bin/python"
SESSION = open_session()
DECISIONS = Decisions(examples=1000, max_usd=Decimal(50), max_hours=Decimal(9))
# One estimator of each kind that the posts build
CASES = {
    "native": "gpt2-compiler",
    "compiled": "gpt2-compiler",
    "tensor-8": "gptj-parallel",
    "pipeline-simple": "gptj-parallel",
    "smddp-16-nodes-12-workers-batch-32": "albert-scaling",
    "ddp-2-nodes-12-workers-batch-16": "albert-scaling",
    "p4d-batch-8": "bert-trainium",
    "trn1": "bert-trainium",
}
# The lab's own, and what the SDK's own code sets for its launcher
OF_THE_LAB = (
    "TrainingJobName",
    "RoleArn",
    "Tags",
    "OutputDataConfig",
    "CheckpointConfig",
    "DebugHookConfig.S3OutputPath",
    "Environment.TRAINDYNO_",
    "Environment.FI_",
    "HyperParameters.sagemaker_",
    "StoppingCondition.MaxPendingTimeInSeconds",
    "ProfilerConfig",
)
# The SDK 3 can't ask for the first three, and writes SageMaker's defaults of the others.
OF_THE_SDK_3 = (
    ("ProfilerConfig",),
    ("DebugHookConfig",),
    ("AlgorithmSpecification", "EnableSageMakerMetricsTimeSeries"),
    ("CheckpointConfig", "LocalPath"),
    ("OutputDataConfig", "CompressionType"),
)


def case_of(name: str) -> Case:
    return next(case for case in PACKS[CASES[name]]() if case.name == name)


def estimator_of(name: str, **changes: Any) -> Any:
    case = case_of(name)
    arguments: dict[str, Any] = {
        "entry_point": "train.py",
        "source_dir": "s3://code/sourcedir.tar.gz",
        "role": ROLE,
        "output_path": "s3://your-bucket/",
        "hyperparameters": dict(case.hyperparameters),
        **case.arguments,
        **changes,
    }
    return case.estimator(sagemaker_session=SESSION, **arguments)


@pytest.mark.parametrize("name", CASES)
def test_the_suite_of_a_posts_estimator_asks_for_its_job(name: str) -> None:
    estimator = estimator_of(name)
    inputs = case_of(name).channels or None
    before = {key: repr(value) for key, value in vars(estimator).items()}
    imported = from_estimator(estimator, DECISIONS, inputs=inputs)
    assert {key: repr(value) for key, value in vars(estimator).items()} == before
    assert [
        difference
        for difference in imported.differences
        if not difference.path.startswith(OF_THE_LAB)
    ] == []
    assert not [difference for difference in imported.differences if difference.reason == NO_FIELD]
    job, source = record(estimator, inputs)
    assert source is None
    is_rewritten = "smdistributed" in str(imported.left_out)
    assert is_rewritten is (name == "native")
    theirs = comparable(job, is_toolkit=True)
    ours = comparable(base_request(parse_suite(imported.document)), is_toolkit=True)
    for section in ("Arguments", "InputDataConfig", "ResourceConfig", "AlgorithmSpecification"):
        assert theirs.get(section) == ours.get(section), section


def test_the_code_of_this_machine_is_named_and_not_uploaded(tmp_path: Path) -> None:
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "train.py").write_text("")
    for changes in (
        {"source_dir": str(tmp_path / "code")},
        {"source_dir": None, "entry_point": str(tmp_path / "code" / "train.py")},
    ):
        workload = from_estimator(estimator_of("p4d-batch-8", **changes)).document["workload"]
        assert workload["source"] == str(tmp_path / "code")
        assert workload["entry_point"] == "train.py"
    with pytest.raises(JobNotImportable, match="has dependencies, expected all code in source_dir"):
        from_estimator(estimator_of("p4d-batch-8", dependencies=["more"]))
    with pytest.raises(JobNotImportable, match=r"the SDK refuses PyTorch\.fit"):
        from_estimator(estimator_of("p4d-batch-8"), inputs={"train": "here/data"})


def test_a_matrix_beside_an_estimator_is_a_suite_for_plan() -> None:
    suite = Suite.from_estimator(
        estimator_of("p4d-batch-8"),
        matrix={"instance": ["ml.p4d.24xlarge", "ml.g5.48xlarge"]},
        inputs=case_of("p4d-batch-8").channels,
        decisions=DECISIONS,
    )
    cells = suite.suite.cells
    assert [cell.settings.instance for cell in cells] == ["ml.p4d.24xlarge", "ml.g5.48xlarge"]
    assert base_request(suite.suite)["ResourceConfig"]["InstanceType"] == "ml.p4d.24xlarge"


def test_other_objects_are_refused_with_the_other_functions_name() -> None:
    with pytest.raises(
        JobNotImportable, match=r"got SimpleNamespace, expected an estimator of the .*2"
    ):
        from_estimator(SimpleNamespace(source_code=None))
    with pytest.raises(SdkJobRefused, match=r"needs the SageMaker SDK 3.*use estimator\(\)"):
        build_model_trainer(our_requests("bert-trainium")[0])


def spot_request() -> dict[str, Any]:
    document = script_document(purchase="spot")
    suite = parse_suite(document)
    jobs = LabJobs(
        subnet_ids=("subnet-1",),
        security_group_ids=("sg-1",),
        encrypts_traffic=True,
        volume_key_arn="arn:aws:kms:us-east-1:1:key/a",
        output_key_arn="arn:aws:kms:us-east-1:1:key/b",
    )
    (run, *_) = trial_runs_of(suite)
    return build_training_job_request(run, suite, attempt=1, settings=replace(SETTINGS, jobs=jobs))


def trial_runs_of(suite: CheckedSuite) -> Iterator[Any]:
    yield from trial_runs("execution-1", suite.cells, [1])


REQUESTS = {
    **{pack: our_requests(pack)[0] for pack in PACKS},
    "trainium": our_requests("bert-trainium")[2],
    "spot": spot_request(),
}


def without_names_and_times(request: Mapping[str, Any]) -> dict[str, Any]:
    stopping = dict(request["StoppingCondition"])
    stopping.pop("MaxPendingTimeInSeconds", None)
    left = {**request, "StoppingCondition": stopping}
    left.pop("TrainingJobName")
    return left


@pytest.mark.parametrize("name", REQUESTS)
def test_fit_of_a_cells_estimator_sends_the_labs_request(name: str) -> None:
    estimator = build_estimator(REQUESTS[name], session=SESSION)
    sent, _ = record(estimator, None)
    assert without_names_and_times(sent) == without_names_and_times(REQUESTS[name])
    assert sent["TrainingJobName"].startswith("sdk-")


def as_the_sdk_3_sends(request: Mapping[str, Any]) -> dict[str, Any]:
    left = {**deepcopy(dict(request)), "TrainingJobName": None}
    for *sections, field in OF_THE_SDK_3:
        place = left
        for section in sections:
            place = place[section]
        place.pop(field, None)
    return left


@pytest.mark.skipif(not SDK3.is_file(), reason="no .envs/model_trainer: make golden makes it")
def test_train_of_a_cells_trainer_sends_the_labs_request() -> None:
    answer = subprocess.run(
        [SDK3, ROOT / "tests/data/golden/send_model_trainer.py"],
        input=json.dumps(REQUESTS),
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT), "AWS_DEFAULT_REGION": "us-east-1"},
    )
    sent = json.loads(answer.stdout[answer.stdout.index("{") :])
    assert sent.keys() == REQUESTS.keys()
    for name, request in sent.items():
        assert as_the_sdk_3_sends(request) == as_the_sdk_3_sends(REQUESTS[name]), name
