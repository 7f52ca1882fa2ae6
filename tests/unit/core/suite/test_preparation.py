"""Which tokens a suite needs, what tells one set of them from another, and the job that makes
them.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from tests.unit.lab_in_memory import SETTINGS
from tests.unit.planned_suites import ample_quotas, prices_of
from tests.unit.suites import script_document, small_document, small_suite
from traindyno.core.errors import SuiteInvalid
from traindyno.core.planning.plan import Plan, plan_suite
from traindyno.core.planning.preparation_plan import due_preparations
from traindyno.core.run.processes import TensorDivision
from traindyno.core.run.settings import TensorLayers
from traindyno.core.run.tokens import DataPreparation, Tokens, TokenSet
from traindyno.core.run.workload import OF_CHAT
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.preparation import (
    Origin,
    needed_tokens,
    preparation_instance,
    tokens_key,
)
from traindyno.core.suite.runs import trial_runs
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import parse_part
from traindyno.sagemaker.request import build_preparation_request, build_training_job_request

ORIGIN = Origin(code="abc.tar.gz", image="pytorch:cpu", data="d1", tokenizer="t1")
KEY = "0123456789abcdef" * 4
# With 120 s to stop, 300 s to upload and 60 s of margin, half an hour.
LIMITS = {"max_usd": 50, "max_hours": 4, "max_job_seconds": 840, "max_attempts": 3}
SYNTHETIC = {"format": "synthetic"}
STREAMED = {"path": "s3://bucket/data/", "input_mode": "stream"}
PLAN = {"colwise": ["layers.*.mlp.up_proj"], "rowwise": ["layers.*.mlp.down_proj"]}
PLANNED = {"instance": ["ml.g5.12xlarge"], "strategy": ["tensor"], "tensor_plan": [None, PLAN]}
USD = {"ml.g5.xlarge": "1.408", "ml.g5.12xlarge": "7.09", "ml.m7i.xlarge": "0.24"}


def workload(**changes: Any) -> dict[str, Any]:
    return {**small_document()["workload"], **changes}


def tokens_of(suite: Suite) -> list[bool | None]:
    return [needed.packing for needed in needed_tokens(suite)]


def key_of(
    origin: Origin = ORIGIN, *, packing: bool = True, degrees: Iterable[int] = (), **changes: Any
) -> str:
    token_set = TokenSet(
        packing=packing, divisions=tuple(TensorDivision(degree=degree) for degree in degrees)
    )
    return tokens_key(small_suite(workload=workload(**changes)).workload, token_set, origin)


def preparation(suite: Suite) -> DataPreparation:
    instance = preparation_instance(suite)
    return DataPreparation(execution_id="execution-1", key=KEY, packing=True, instance=instance)


def request(owner: DataPreparation, suite: Suite) -> dict[str, Any]:
    return build_preparation_request(owner, suite, attempt=1, settings=SETTINGS)


def test_cells_share_tokens_unless_they_want_them_packed_differently() -> None:
    assert tokens_of(small_suite()) == [True]
    assert tokens_of(small_suite(matrix={"packing": [True, False]}, baseline={})) == [True, False]


def test_text_to_be_classified_is_never_packed() -> None:
    classified = workload(task="sequence-classification", label_count=2)
    suite = small_suite(workload=classified, matrix={"packing": [True, False]}, baseline={})
    assert tokens_of(suite) == [False]


@pytest.mark.parametrize("dataset", [SYNTHETIC, STREAMED], ids=["synthetic", "streamed"])
@pytest.mark.parametrize(
    "model", ["me/model", "s3://bucket/model/", {"config": {"model_type": "gpt2"}}], ids=str
)
def test_without_tokens_only_a_model_of_the_hub_needs_a_job(
    model: Any, dataset: dict[str, str]
) -> None:
    matrix = {"instance": ["ml.g5.12xlarge"], "strategy": ["tensor", "ddp"]}
    given = workload(dataset=dataset, model=model, tokenizer={"path": "gpt2"})
    suite = small_suite(workload=given, training={}, baseline={}, matrix=matrix)
    assert needed_tokens(suite) == ((TokenSet(),) if model == "me/model" else ())


def test_the_job_making_tokens_checks_the_models_divisions_and_stages() -> None:
    given = {"dataset": {"path": "s3://bucket/data/abc/"}, "model": "s3://bucket/model/"}
    pipeline = {"instance": "ml.g5.12xlarge", "strategy": "pipeline", "tensor_plan": None}
    suite = small_suite(
        workload=workload(tokenizer=None, **given),
        **{
            "training": {},
            "baseline": {},
            "matrix": PLANNED,
            "include": [pipeline],
            "limits": LIMITS,
        },
    )
    (wanted,) = needed_tokens(suite)
    layers = TensorLayers(colwise=tuple(PLAN["colwise"]), rowwise=tuple(PLAN["rowwise"]))
    divisions = (TensorDivision(degree=4), TensorDivision(degree=4, layers=layers))
    assert (wanted.divisions, wanted.stage_counts) == (divisions, (4,))
    (due,) = due_preparations(
        planned_of(suite, (replace(wanted, key=KEY),)).preparation, "execution-1"
    )
    assert due.divisions == divisions
    assert (
        parse_part(
            json.loads(request(due, suite)["HyperParameters"]["preparation"]), DataPreparation
        )
        == due
    )
    others = (
        {"divisions": divisions[:1]},
        {"divisions": divisions[1:]},
        {"divisions": (TensorDivision(degree=2),)},
        {"stage_counts": ()},
        {"stage_counts": (2,)},
    )
    keys = {
        tokens_key(suite.workload, replace(wanted, **changes), ORIGIN) for changes in ({}, *others)
    }
    assert len(keys) == 1 + len(others)


def test_a_users_script_has_its_own_model() -> None:
    assert tokens_of(parse_suite(script_document())) == []


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": {"path": "s3://bucket/data/other/"}},
        {"dataset": {"path": "s3://bucket/data/abc/", "split": "validation"}},
        {"dataset": {"path": "s3://bucket/data/abc/", "evaluation_split": "test"}},
        {"dataset": {"path": "s3://bucket/data/abc/", "text_column": "body"}},
        {"tokenizer": {"train_vocabulary_size": 2001}},
        {"tokenizer": {"path": "gpt2", "revision": "main"}},
        {"sequence_length": 64},
        {"examples": 9999},
        {"task": "masked-lm"},
        {"packing": False},
        *(
            {"origin": replace(ORIGIN, **{name: "other"})}
            for name in ("code", "image", "data", "tokenizer")
        ),
    ],
    ids=str,
)
def test_whatever_changes_the_tokens_changes_their_key(change: dict[str, Any]) -> None:
    assert key_of(**change) != key_of()
    assert key_of(**change) == key_of(**change)


def test_transport_and_trainers_of_tokens_leave_their_key_alone() -> None:
    assert key_of(dataset={"path": "s3://bucket/data/abc/", "input_mode": "FastFile"}) == key_of()
    assert key_of(model={"config": {"model_type": "gpt2", "n_layer": 3}}) == key_of()


def test_a_models_own_tokenizer_counts_by_path_and_revision() -> None:
    own: dict[str, Any] = {"tokenizer": None, "dataset": {"path": "s3://bucket/data/abc/"}}
    keys = {
        key_of(model=model, **own)
        for model in ("gpt2", "gpt2-medium", {"path": "gpt2", "revision": "v1"})
    }
    assert len(keys) == 3


def test_an_undivided_model_leaves_the_key_alone() -> None:
    keys = {
        key_of(degrees=degrees, model=model)
        for degrees in ((2,), ())
        for model in ("gpt2", "gpt2-medium")
    }
    assert len(keys) == 3


def test_data_is_prepared_on_this_machine_if_any_cell_runs_here() -> None:
    remote = small_suite()
    mixed = small_suite(
        training={}, baseline={}, matrix={"instance": ["ml.g5.xlarge", "local.cpu"]}
    )
    asked = small_suite(preparation={"instance": "ml.m5.4xlarge"})
    instances = [preparation_instance(suite) for suite in (remote, mixed, asked)]
    assert instances == ["ml.m7i.xlarge", "local.cpu", "ml.m5.4xlarge"]


def test_the_job_leaves_plain_files_under_its_content_key() -> None:
    suite = small_suite(purchase="spot", preparation={"max_seconds": 600})
    job = request(preparation(suite), suite)
    assert job["OutputDataConfig"] == {
        "S3OutputPath": f"s3://results/prepared/{KEY}",
        "CompressionType": "NONE",
    }
    assert job["ResourceConfig"]["InstanceType"] == "ml.m7i.xlarge"
    assert ":2.13-cpu-" in job["AlgorithmSpecification"]["TrainingImage"]
    assert job["StoppingCondition"] == {"MaxRuntimeInSeconds": 600}
    assert "EnableManagedSpotTraining" not in job
    asked = json.loads(job["HyperParameters"]["preparation"])
    assert (asked["key"], asked["packing"], asked["divisions"]) == (KEY, True, [])
    assert not {"settings", "tokens"} & job["HyperParameters"].keys()
    assert job["TrainingJobName"].endswith("-01234567-data-a1")


@pytest.mark.parametrize("size_gb", [500, None])
def test_the_job_has_the_suites_volume_or_the_labs(size_gb: int | None) -> None:
    suite = small_suite(job={"volume_size_gb": size_gb})
    expected = size_gb or SETTINGS.jobs.volume_size_gb
    assert request(preparation(suite), suite)["ResourceConfig"]["VolumeSizeInGB"] == expected


def test_the_job_runs_in_the_labs_image_with_its_packages() -> None:
    suite = small_suite()
    run = preparation(suite)
    settings = replace(SETTINGS, images={"none": "me/lab-cpu:1", "gpu": "me/lab-gpu:1"})
    job = build_preparation_request(run, suite, attempt=1, settings=settings)
    assert job["AlgorithmSpecification"]["TrainingImage"] == "me/lab-cpu:1"


def test_the_preparation_brings_no_weights_over() -> None:
    model = workload(model="s3://bucket/model/", tokenizer=None, image="me/my-gpu-image:1")
    suite = small_suite(workload=model)
    job = request(preparation(suite), suite)
    modes = {channel["ChannelName"]: channel.get("InputMode") for channel in job["InputDataConfig"]}
    assert modes == {"train": "FastFile", "model": "FastFile"}
    assert job["AlgorithmSpecification"]["TrainingImage"] != "me/my-gpu-image:1"


def test_a_chat_template_is_a_channel_of_the_job_making_tokens_alone() -> None:
    chat = {
        "path": "s3://bucket/data/",
        "format": "chat",
        "chat_template": "s3://bucket/template/",
        "loss_on": "all",
    }
    suite = small_suite(workload=workload(dataset=chat))
    job = request(preparation(suite), suite)
    assert "chat_template" in [channel["ChannelName"] for channel in job["InputDataConfig"]]
    sent = json.loads(job["HyperParameters"]["workload"])["dataset"]
    assert (sent["loss_on"], "too_long" in sent) == ("all", False)
    (run, *_) = trial_runs("execution-1", suite.cells, [1])
    run = replace(run, tokens=Tokens(key=KEY, s3_uri="s3://results/prepared/"))
    channels = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)
    assert [channel["ChannelName"] for channel in channels["InputDataConfig"]] == ["train"]


def test_of_other_data_a_job_hears_nothing_of_conversations() -> None:
    """An execution keeps its earlier code, which would refuse the fields."""
    suite = small_suite(workload=workload(dataset={"path": "s3://bucket/data/"}))
    sent = json.loads(request(preparation(suite), suite)["HyperParameters"]["workload"])
    assert not {*OF_CHAT} & {*sent["dataset"]}


@pytest.mark.parametrize("mode", ["File", "FastFile"])
def test_a_run_reads_tokens_in_the_datasets_place_and_mode(mode: str) -> None:
    dataset = {"path": "nyu-mll/glue", "name": "sst2", "input_mode": mode}
    suite = small_suite(
        workload=workload(dataset=dataset, tokenizer={"path": "s3://bucket/tokenizer/"})
    )
    uri = f"s3://results/prepared/{KEY}/job/output/model/"
    (run, *_) = trial_runs("execution-1", suite.cells, [1])
    run = replace(run, tokens=Tokens(key=KEY, s3_uri=uri))
    (channel,) = build_training_job_request(run, suite, attempt=1, settings=SETTINGS)[
        "InputDataConfig"
    ]
    assert (channel["ChannelName"], channel["DataSource"]["S3DataSource"]["S3Uri"]) == (
        "train",
        uri,
    )
    assert channel.get("InputMode", "File") == mode


def planned(tokens: tuple[TokenSet, ...] | None = None, **changes: Any) -> Plan:
    return planned_of(small_suite(**{"limits": LIMITS, **changes}), tokens)


def planned_of(suite: Suite, tokens: tuple[TokenSet, ...] | None = None) -> Plan:
    prices = prices_of(USD)
    quotas = ample_quotas(suite)
    return plan_suite(
        suite, execution_id="execution-1", prices=prices, quotas=quotas, histories={}, tokens=tokens
    )


def test_the_plan_counts_cost_and_time_of_preparing() -> None:
    plan = planned()
    # half an hour at 0.24 once, and three times at worst; two jobs of half an hour at 1.408, and at
    # worst three attempts of each and one more for its second run: 8 x 0.704 = 5.632
    assert plan.preparation is not None
    assert (plan.preparation.one_attempt_usd, plan.preparation.worst_case_usd) == (
        Decimal("0.12"),
        Decimal("0.36"),
    )
    assert (plan.one_attempt_usd, plan.worst_case_usd) == (Decimal("1.528"), Decimal("5.992"))
    # at worst three times the preparation and four times a job, each after 7200 s of waiting
    assert plan.one_attempt_hours == 2 * (Decimal(840) / 3600)
    assert plan.worst_case_hours == Decimal(7 * (840 + 7200)) / 3600
    assert plan.refusals == ()


def test_a_due_preparation_is_named_by_its_key() -> None:
    (due,) = due_preparations(
        planned((TokenSet(packing=True, key=KEY, is_ready=False),)).preparation, "execution-1"
    )
    assert due == DataPreparation(
        execution_id="execution-1", key=KEY, packing=True, instance="ml.m7i.xlarge"
    )
    assert due.preparation_id == "prepare-01234567"


def test_data_is_not_prepared_on_an_accelerator() -> None:
    with pytest.raises(
        SuiteInvalid, match=r"preparation\.instance: .*, expected a type without accelerators"
    ):
        parse_suite(small_document(preparation={"instance": "ml.g5.xlarge"}))
