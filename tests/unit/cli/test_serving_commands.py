"""From a trained model to a checked endpoint: which model, the requests, their order, and the
commands.
"""

import re
import time
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from localcloud.sagemaker_service.api.request_check import check_request
from tests.sentences import Snapshot
from tests.unit.cli.test_execution_receipt import target_of
from tests.unit.cli.test_text_is_text import call as start
from tests.unit.lab_in_memory import EXECUTION, NOW, MemoryObjects, make_lab
from tests.unit.run_samples import completed_result, failed_result, make_cell, make_suite
from tests.unit.serving_in_memory import (
    DEPLOYMENT,
    NAME,
    SAMPLES,
    SAVED_MODEL,
    SETTINGS,
    MemoryServing,
)
from traindyno.api.served_model import check_endpoint, deploy_model, find_deployable_model
from traindyno.cli.commands import serving_commands
from traindyno.cli.display.deployment_text import lines_after, lines_before
from traindyno.cli.lab_choice import LabChoice
from traindyno.core.errors import DocumentInvalid
from traindyno.core.instances.instance_types import has_gpu
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult, run_result_document
from traindyno.core.run.workload import Workload
from traindyno.core.s3_keys import result_key, samples_key, served_model_key, suite_key, verdict_key
from traindyno.core.serving.deployment import (
    ModelNotServable,
    deployment_document,
    parse_deployment,
)
from traindyno.core.serving.samples import EvaluationSamples, Latency, samples_document
from traindyno.core.suite.choices import Task
from traindyno.core.suite.suite import Measurement
from traindyno.core.suite.suite_file import stored_suite
from traindyno.core.verdict.judge import judge
from traindyno.core.verdict.verdict import verdict_document
from traindyno.sagemaker.job_settings import LabJobs
from traindyno.sagemaker.serving import (
    BLACKWELL,
    GPU_VARIABLE,
    build_requests,
    container_kind,
)
from traindyno.store.results_bucket import ResultsBucket

KEY = "arn:aws:kms:us-east-1:111122223333:key/abc"
SUBNETS = ("subnet-0123456789abcdef0",)
GROUPS = ("sg-0123456789abcdef0",)
OWN_JOBS = LabJobs(
    subnet_ids=SUBNETS, security_group_ids=GROUPS, volume_key_arn=KEY, tags={"team": "vision"}
)
SAGEMAKER = botocore.session.get_session().get_service_model("sagemaker")
FAST = make_cell("0000000a", "ddp")
SLOW = make_cell("0000000b", "fsdp")
MEASURED = [
    completed_result(cell, trial, step_seconds=seconds)
    for trial in (1, 2, 3)
    for cell, seconds in ((FAST, 0.1), (SLOW, 0.2))
]
BROKEN = [failed_result(FAST, 1, Outcome.OUT_OF_MEMORY)]
SCRIPT: dict[str, Any] = {
    "task": Task.SCRIPT,
    "source": "s3://b/x/sourcedir.tar.gz",
    "entry_point": "train.py",
}
Call = Callable[..., tuple[int, str]]


def test_each_type_gets_known_requests_and_nvidia_types_the_images_driver() -> None:
    types = SAGEMAKER.shape_for("ProductionVariantInstanceType").metadata["enum"]
    served = [
        instance for instance in types if not instance.startswith(("ml.trn", "ml.inf", *BLACKWELL))
    ]
    for instance_type, jobs in (
        (instance, jobs)
        for instance in (*served, "ml.g99.xlarge")
        for jobs in (LabJobs(), OWN_JOBS)
    ):
        deployment = replace(DEPLOYMENT, instance_type=instance_type)
        requests = model, config, _ = build_requests(deployment, replace(SETTINGS, jobs=jobs))
        container = model["PrimaryContainer"]
        (variant,) = config["ProductionVariants"]
        is_gpu = has_gpu(instance_type) or instance_type.startswith(("ml.g", "ml.p"))
        assert (
            ("-gpu-" in container["Image"]) == (GPU_VARIABLE in container["Environment"]) == is_gpu
        )
        assert ("InferenceAmiVersion" in variant) == is_gpu
        assert config.get("KmsKeyId") == jobs.volume_key_arn
        for operation, request in zip(
            ("CreateModel", "CreateEndpointConfig", "CreateEndpoint"), requests, strict=True
        ):
            shape = SAGEMAKER.operation_model(operation)
            if instance_type in types:
                check_request(shape, request, {})
            assert shape.input_shape is not None
            report = ParamValidator().validate(request, shape.input_shape)
            assert not report.has_errors(), report.generate_report()
    with pytest.raises(ModelNotServable, match=r"got ml\..*instance type with CPUs"):
        container_kind("ml.trn1.2xlarge")
    for blackwell in (instance for instance in types if instance.startswith(BLACKWELL)):
        with pytest.raises(ModelNotServable, match=r"generation Blackwell\. Expected an older GPU"):
            container_kind(blackwell)


def test_an_unservable_model_creates_nothing() -> None:
    lab = MemoryServing()
    isolated = replace(SETTINGS, jobs=LabJobs(isolates_network=True))
    with pytest.raises(ModelNotServable, match=r"isolate_network=on, .*needs a network"):
        deploy_model(DEPLOYMENT, lab.serving, isolated, clock=lambda: NOW)
    for refused, says in (
        ({"name": "other--x"}, r'name: got "other--x", expected a name .* begins with traindyno--'),
        ({"hours": 9000}, "hours: got 9000.0, expected up to 8784 hours"),
        ({"max_usd": Decimal("0.067")}, r"expected at least \$0.068, which pays for the 1200 s"),
        (
            {"max_usd": Decimal(1), "usd_per_hour": None},
            r"no amount, as the price of ml\.c5\.xlarge is unknown",
        ),
    ):
        with pytest.raises(DocumentInvalid, match=says):
            parse_deployment(deployment_document(replace(DEPLOYMENT, **refused)), lab="traindyno")
    for late in (NOW + 3601, NOW + 901):
        with pytest.raises(ModelNotServable, match="while its model was copied"):
            deploy_model(DEPLOYMENT, lab.serving, SETTINGS, clock=iter([late]).__next__)
    assert served_model_key(NAME) not in lab.objects.contents
    del lab.objects.contents[SAVED_MODEL]
    with pytest.raises(ModelNotServable, match="large models expire 30 days after"):
        lab.deploy()
    assert not lab.sagemaker.kept["Model"]


def test_requests_are_timed_for_a_minute_at_most() -> None:
    """The clock moves on by 7 s with each look."""
    lab = MemoryServing()
    lab.deploy()
    clock = iter(range(0, 100_000, 7))
    _, latency = check_endpoint(DEPLOYMENT, lab.serving, clock=lambda: float(next(clock)))
    assert (latency.requests, latency.p50_seconds, latency.p99_seconds) == (3, 7, 7)


def bucket_of(
    results: list[RunResult] = MEASURED,
    saves: bool = True,
    samples: EvaluationSamples | None = SAMPLES,
    **workload: Any,
) -> ResultsBucket:
    bucket = MemoryObjects()
    suite = make_suite(
        training={"instance": "ml.p4d.24xlarge"},
        measurement=Measurement(save_model=saves),
        workload=Workload(**{"task": Task.CAUSAL_LM, "examples": 100, **workload}),
    )
    bucket.write_json(suite_key(EXECUTION), stored_suite(suite))
    for result in results:
        run_id = result.run.run_id
        bucket.write_json(result_key(EXECUTION, run_id), run_result_document(result))
        if samples is not None and result.attempts:
            key = samples_key(EXECUTION, run_id, result.attempts[-1].job_name)
            bucket.write_json(key, samples_document(samples))
    if results:
        bucket.write_json(
            verdict_key(EXECUTION), verdict_document(judge(suite, [FAST, SLOW], results))
        )
    return bucket


def test_the_recommended_cells_latest_model_is_found_and_a_named_cells() -> None:
    bucket = bucket_of()
    _, run, job_name = find_deployable_model(EXECUTION, None, bucket)
    assert (run.cell.cell_id, run.trial) == ("0000000a", 3)
    assert job_name == MEASURED[-2].attempts[-1].job_name
    for name in ("0000000b", "fsdp"):
        assert find_deployable_model(EXECUTION, name, bucket)[1].cell.cell_id == "0000000b"


@pytest.mark.parametrize(
    ("bucket", "cell"),
    [
        (MemoryObjects(), None),
        (bucket_of(saves=False), None),
        (bucket_of([]), None),
        (bucket_of(**SCRIPT), None),
        (bucket_of(), "tensor"),
        (bucket_of(BROKEN), "ddp"),
        (bucket_of(BROKEN), None),
        (bucket_of(samples=None), None),
        (bucket_of(samples=replace(SAMPLES, samples=())), None),
    ],
)
def test_a_refusal_says_the_remedy(
    snapshot: Snapshot, bucket: ResultsBucket, cell: str | None
) -> None:
    with pytest.raises(ModelNotServable) as raised:
        find_deployable_model(EXECUTION, cell, bucket)
    snapshot(str(raised.value))


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> MemoryServing:
    """A lab in which `deploy` finds the model of ``DEPLOYMENT``."""
    lab = MemoryServing()
    target = target_of(make_lab()[0])
    monkeypatch.setattr(LabChoice, "find_target", lambda _: target)
    monkeypatch.setattr(serving_commands, "serving_of", lambda _: lab.serving)
    monkeypatch.setattr(serving_commands, "_plan", lambda *_: DEPLOYMENT)
    monkeypatch.setattr(time, "time", lambda: NOW)
    return lab


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    return lambda *words: (start(*words), "".join(capsys.readouterr()))


def test_a_model_is_copied_deployed_once_checked_listed_and_undeployed(
    snapshot: Snapshot, lab: MemoryServing, call: Call
) -> None:
    status, text = call("deploy", EXECUTION)
    assert status == 0, text
    for said in (
        "2 answers agree",
        "latency of 100 requests",
        f"delete it with: traindyno undeploy {NAME}",
    ):
        assert said in text
    lab.deploy()  # the same requests again
    assert lab.objects.contents[served_model_key(NAME)] == b"the model"
    assert lab.serving.find(NAME) == DEPLOYMENT
    assert NAME in call("endpoints")[1]
    assert call("undeploy", NAME) == (0, f"{NAME} is deleted\n")
    assert not any((*lab.sagemaker.kept.values(), lab.serving.names()))
    assert call("undeploy", NAME)[0] == 1
    lab.sagemaker.add("traindyno--mine")
    snapshot(call("undeploy", "traindyno--mine")[1])
    assert set(lab.sagemaker.endpoints) == {"traindyno--mine"}


def test_failures_and_differences_are_told_and_deleted(
    snapshot: Snapshot, lab: MemoryServing, call: Call
) -> None:
    said = {
        "CreateEndpoint": (
            r"\(DeploymentRefused\): SageMaker refused the "
            r"endpoint: .* limit is 0 Instances"
        ),
        "InvokeEndpoint": r"\(InvocationFailed\): .* limit is 0 Instances",
        "no answer": (
            r"\(AnswersDiffer\): .*2 answers differ.*sample 'a bad film': got 0.500, expected "
            r"'bad'"
        ),
        "no reason": rf"gave no reason\nthe container's log is /aws/sagemaker/Endpoints/{NAME}",
    }
    for fault, pattern in said.items():
        lab.sagemaker.refuse(
            fault, "ResourceLimitExceeded", "the account-level limit is 0 Instances"
        )
        lab.sagemaker.wrong = {"bad"} if fault == "no answer" else set()
        lab.sagemaker.first_status = "Failed" if fault == "no reason" else "InService"
        status, text = call("deploy", EXECUTION)
        assert re.search(f"{NAME} was not deployed .*{pattern}", text, re.DOTALL), text
        assert (status, any(lab.sagemaker.kept.values())) == (1, False)
    lab.sagemaker.first_status = "Creating"
    lab.deploy()
    status, text = call("undeploy", NAME)
    assert status == 1
    snapshot(text)


def test_the_cost_is_told_before_and_after(snapshot: Snapshot) -> None:
    lines = list(lines_before(replace(DEPLOYMENT, max_usd=Decimal("0.30"), hours=9)))
    assert lines[1] == "on ml.c5.xlarge: $0.20 per hour"
    snapshot(lines[2])
    after = list(lines_after(DEPLOYMENT, 8, Latency.of([0.018] * 100)))
    assert "p50 18.0 ms, p99 18.0 ms" in after[2]
    # 0.018 s × 1,000,000 = 5 h of $0.204
    snapshot(after[3])
