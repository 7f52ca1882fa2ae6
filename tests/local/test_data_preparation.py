"""A suite's data is tokenised once, by one job before the first run, and not again by a later
suite.
"""

from typing import Any

import pytest

from tests.local.local_lab import LocalLab
from tests.local.test_reference_suites import ONE_THREAD
from traindyno.core.jobs.journal_format import DOCUMENT_CHANNEL

pytestmark = pytest.mark.local

REVIEWS = "reviews.csv"
MODEL = {
    "model_type": "bert",
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
}


def briefly(**changes: Any) -> dict[str, Any]:
    """Each run is a process that imports PyTorch, so that there is one of each cell."""
    return {
        "goal": "fastest",
        "search": "grid",
        "workload": {
            "task": "sequence-classification",
            "model": {"config": MODEL},
            "tokenizer": {"train_vocabulary_size": 300},
            "dataset": {"path": REVIEWS, "text_column": "review"},
            "sequence_length": 16,
            "label_count": 2,
            "examples": 200,
            "environment": ONE_THREAD,
        },
        "training": {"instance": "local.cpu", "strategy": "single"},
        "matrix": {"batch_size_per_device": [2, 4]},
        "measurement": {"trials": 1, "max_steps": 6},
        "limits": {"max_usd": 1, "max_hours": 1, "max_job_seconds": 120},
        **changes,
    }


def write_reviews(lab: LocalLab) -> None:
    rows = [
        f'{row % 2},"a {"good" if row % 2 else "bad"} film seen {row} times"' for row in range(200)
    ]
    (lab.folder / REVIEWS).write_text("\n".join(["label,review", *rows]))


def jobs_of(lab: LocalLab, name: str) -> list[dict[str, Any]]:
    """The execution's jobs in the order of their creation."""
    sagemaker = lab.client("sagemaker")
    listed = sagemaker.list_training_jobs(
        NameContains=name, SortBy="CreationTime", SortOrder="Ascending"
    )
    names = [job["TrainingJobName"] for job in listed["TrainingJobSummaries"]]
    return [sagemaker.describe_training_job(TrainingJobName=job) for job in names]


def train_channel(job: dict[str, Any]) -> str:
    """A shared job has a channel with its document beside it."""
    (channel,) = [
        given_channel
        for given_channel in job["InputDataConfig"]
        if given_channel["ChannelName"] != DOCUMENT_CHANNEL
    ]
    return str(channel["DataSource"]["S3DataSource"]["S3Uri"])


@pytest.fixture(scope="module")
def first(lab: LocalLab) -> dict[str, Any]:
    write_reviews(lab)
    answer = lab.run_suite("prepared", briefly(), "prepared-1")
    return {"report": answer.json(), "jobs": jobs_of(lab, "prepared")}


def test_one_job_prepares_and_every_run_reads_its_tokens(first: dict[str, Any]) -> None:
    preparation, job = first["jobs"]
    assert [result["outcome"] for result in first["report"]["results"]] == ["completed"] * 2
    assert preparation["OutputDataConfig"]["CompressionType"] == "NONE"
    assert train_channel(job) == preparation["ModelArtifacts"]["S3ModelArtifacts"]
    key = preparation["OutputDataConfig"]["S3OutputPath"].rpartition("/")[2]
    facts = [
        result["environment"]["facts"]["run"]["tokens"]["key"]
        for result in first["report"]["results"]
    ]
    assert facts == [key] * 2


def test_the_same_suite_again_prepares_nothing(lab: LocalLab, first: dict[str, Any]) -> None:
    answer = lab.run_suite("prepared", briefly(matrix={"batch_size_per_device": [2]}), "prepared-2")
    again = jobs_of(lab, "prepared")[len(first["jobs"]) :]
    assert [train_channel(job) for job in again] == [train_channel(first["jobs"][1])]
    assert len(again) == len(answer.json()["results"]) == 1
