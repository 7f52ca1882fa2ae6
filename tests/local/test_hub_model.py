"""A suite's model and data on the Hub are read once: every run, and a later suite, reads them from
the lab's bucket.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.local.local_lab import LocalLab
from tests.local.test_reference_suites import ONE_THREAD
from tests.training.hub_repositories import write_dataset, write_model
from tests.training.hub_server import COMMIT, hub_server

pytestmark = [pytest.mark.local, pytest.mark.nightly]
TEMPLATE = (
    "{% for turn in messages %}{% if turn.role == 'assistant' %}{% generation %}{{ turn.content }}"
    "{% endgeneration %}{% else %}{{ turn.content }} {% endif %}{% endfor %}"
)


def suite(environment: dict[str, str]) -> dict[str, Any]:
    return {
        "goal": "fastest",
        "search": "grid",
        "workload": {
            "task": "causal-lm",
            "model": {"path": "me/model", "revision": COMMIT},
            "dataset": {"path": "me/data", "revision": COMMIT},
            "sequence_length": 16,
            "examples": 10_000,
            "environment": {**environment, **ONE_THREAD},
        },
        "training": {"instance": "local.cpu", "strategy": "single"},
        "matrix": {"batch_size_per_device": [2]},
        "measurement": {"trials": 1, "max_steps": 6},
        "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 120},
    }


def channels(job: dict[str, Any]) -> dict[str, str]:
    return {
        channel["ChannelName"]: channel["DataSource"]["S3DataSource"]["S3Uri"]
        for channel in job["InputDataConfig"]
    }


def test_the_hub_is_asked_before_the_first_run_only_and_by_no_later_suite(
    lab: LocalLab, tmp_path: Path
) -> None:
    write_model(tmp_path / "hub" / "me" / "model")
    write_dataset(tmp_path / "hub" / "me" / "data", rows=1000)
    sagemaker = lab.client("sagemaker")
    with hub_server(tmp_path / "hub", tmp_path / "home") as hub:
        first = lab.run_suite("hub-model", suite(hub.environment), "hub-model-1")
        asked = len(hub.asked)
        assert asked > 0
        assert (
            hub.sent["model.safetensors"]
            == (tmp_path / "hub/me/model/model.safetensors").stat().st_size
        )
        again = lab.run_suite("hub-model", suite(hub.environment), "hub-model-2")
        assert len(hub.asked) == asked
    results = [*first.json()["results"], *again.json()["results"]]
    assert [result["outcome"] for result in results] == ["completed"] * 2
    listed = sagemaker.list_training_jobs(
        NameContains="hub-model", SortBy="CreationTime", SortOrder="Ascending"
    )
    names = [job["TrainingJobName"] for job in listed["TrainingJobSummaries"]]
    data, copy, *runs = [sagemaker.describe_training_job(TrainingJobName=name) for name in names]
    made = {"train": data, "model": copy}
    places = {name: job["ModelArtifacts"]["S3ModelArtifacts"] for name, job in made.items()}
    assert [channels(run) for run in runs] == [places] * 2
    receipt = lab.receipt("hub-model-1")["receipt"]
    assert {"data preparation", "model staging"} < {line["label"] for line in receipt["lines"]}


def test_conversations_of_the_hub_train_an_adapter_beside_a_model_of_the_hub(
    lab: LocalLab, tmp_path: Path
) -> None:
    write_model(tmp_path / "hub" / "me" / "chat")
    (tmp_path / "hub" / "me" / "chat" / "chat_template.jinja").write_text(TEMPLATE)
    (tmp_path / "hub" / "me" / "chats").mkdir()
    turns = [{"role": "user", "content": "2 3"}, {"role": "assistant", "content": "4 5"}]
    rows = json.dumps({"messages": turns}) + "\n"
    (tmp_path / "hub" / "me" / "chats" / "train.jsonl").write_text(rows * 200)
    with hub_server(tmp_path / "hub", tmp_path / "home") as hub:
        document = suite(hub.environment)
        document["workload"]["model"]["path"] = "me/chat"
        document["workload"]["dataset"]["path"] = "me/chats"
        document["training"]["adapter"] = {"rank": 2}
        report = lab.run_suite("hub-chats", document).json()
    (result,) = report["results"]
    assert result["outcome"] == "completed"
    (row,) = report["verdict"]["rows"]
    assert row["time"], row
