"""A run whose model is copied to the lab's bucket reads it from a channel, and needs the Hub for
nothing else.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.unit.lab_in_memory import SETTINGS
from tests.unit.suites import small_document, small_suite
from traindyno.api.suite_loading import load_suite
from traindyno.core.run.tokens import DataPreparation, Tokens
from traindyno.core.suite.preparation import needed_tokens, preparation_seconds
from traindyno.core.suite.runs import trial_runs
from traindyno.sagemaker.request import build_preparation_request, build_training_job_request

SUITES = Path(__file__).resolve().parents[3] / "suites"
COPY = "s3://results/prepared/abc/job/output/model/"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf"
TOKENS = Tokens(key="0123456789abcdef" * 4, s3_uri="s3://results/prepared/def/job/output/model/")
DATA = {"path": "s3://bucket/data/abc/"}


def request(*, tokens: Tokens | None, **workload: Any) -> dict[str, Any]:
    changed = {
        **small_document()["workload"],
        "model": {"path": "me/model", "revision": "v1"},
        "tokenizer": None,
    }
    suite = small_suite(workload={**changed, "hub_token_secret": SECRET, **workload})
    (run, *_) = trial_runs("execution-1", suite.cells, [1])
    run = replace(run, tokens=tokens, model_s3_uri=COPY)
    return build_training_job_request(run, suite, attempt=1, settings=SETTINGS)


def channels(job: dict[str, Any]) -> dict[str, str]:
    return {
        channel["ChannelName"]: channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in job["InputDataConfig"]
    }


def test_the_copy_is_the_runs_model_and_the_hub_is_not_named() -> None:
    job = request(tokens=TOKENS)
    assert channels(job) == {"train": TOKENS.s3_uri, "model": COPY}
    asked = json.loads(job["HyperParameters"]["workload"])
    assert asked["model"] == {"path": COPY, "config": None, "revision": None} or asked["model"] == {
        "path": COPY
    }
    assert "me/model" not in json.dumps(job)
    assert SECRET not in json.dumps(job)


@pytest.mark.parametrize(
    ("workload", "needs_hub"),
    [
        ({"dataset": DATA, "tokenizer": {"path": "me/tokenizer"}}, True),
        ({"dataset": {"path": "me/data"}}, True),
        ({"dataset": DATA}, False),  # the model's own tokenizer is in its copy
        ({"dataset": {"format": "synthetic"}}, False),
    ],
    ids=str,
)
def test_the_hubs_token_is_kept_for_other_repositories_of_the_hub(
    workload: dict[str, Any], needs_hub: bool
) -> None:
    assert (SECRET in json.dumps(request(tokens=None, **workload))) is needs_hub


def test_a_tokenizer_in_s3_has_a_channel_beside_the_copy() -> None:
    job = request(tokens=None, dataset=DATA, tokenizer={"path": "s3://bucket/tokenizer/"})
    assert channels(job) == {
        "train": DATA["path"],
        "model": COPY,
        "tokenizer": "s3://bucket/tokenizer/",
    }


@pytest.mark.parametrize(
    "pack", ["gptj-parallel", "albert-scaling", "gpt2-compiler", "bert-trainium"]
)
def test_no_run_of_a_modern_suite_loads_its_model_from_the_hub(pack: str) -> None:
    suite = load_suite(SUITES / pack / "modern.yaml").suite
    hub_id = str(suite.workload.model and suite.workload.model.path)
    assert [needed_token.stages_model for needed_token in needed_tokens(suite)].count(True) == 1
    settings = replace(SETTINGS, images={"gpu": "me/lab:1", "neuron": "me/lab-neuron:1"})
    for run in trial_runs("execution-1", suite.cells, [1]):
        job = build_training_job_request(
            replace(run, tokens=TOKENS, model_s3_uri=COPY), suite, attempt=1, settings=settings
        )
        assert channels(job) == {"train": TOKENS.s3_uri, "model": COPY}
        assert hub_id not in json.dumps(job["HyperParameters"])


def test_the_job_copying_gptj_has_room_and_time_for_its_weights() -> None:
    """24.2 GB in single precision."""
    suite = load_suite(SUITES / "gptj-parallel" / "modern.yaml").suite
    copying = DataPreparation(execution_id="execution-1", key=TOKENS.key, instance="ml.m7i.xlarge")
    job = build_preparation_request(copying, suite, attempt=1, settings=SETTINGS)
    assert job["ResourceConfig"]["VolumeSizeInGB"] >= 2 * 24.2
    assert 24.2e9 / job["StoppingCondition"]["MaxRuntimeInSeconds"] < 10e6  # bytes a second
    assert "InputDataConfig" not in job
    assert "packing" not in json.loads(job["HyperParameters"]["preparation"])
    assert json.loads(job["HyperParameters"]["workload"])["model"]["path"] == "EleutherAI/gpt-j-6b"


def test_albert_reads_as_many_sequences_as_its_examples_say() -> None:
    suite = load_suite(SUITES / "albert-scaling" / "modern.yaml").suite
    tokens, copy = needed_tokens(suite)
    assert (tokens.sequences or suite.workload.examples, copy.stages_model) == (640_000, True)
    assert preparation_seconds(suite) == 7200
