"""Tokens that one job prepares are those that each run would have made for itself, and are checked
when read.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.training.jobs import REPO_ROOT, JobEnd
from tests.training.run_documents import KEY, run_document, run_preparation, run_training

READ = {"key": KEY, "s3_uri": "s3://bucket/prepared/"}


def read(folder: Path, document: dict[str, Any], tokens: Path, **changes: str) -> JobEnd:
    folder.mkdir()
    return run_training(folder, {**document, "tokens": {**READ, **changes}}, tokens)


def losses(end: JobEnd) -> list[float]:
    return [line["loss"] for line in end.of_kind("step")]


@pytest.mark.parametrize("model", ["gpt2", "bert"])
def test_a_run_on_prepared_tokens_learns_the_same_as_one_on_texts(
    model: str, tmp_path: Path, texts: Path, reviews: Path
) -> None:
    data = texts if model == "gpt2" else reviews
    # The reviews have a split for evaluation; a part of the texts is held out for it.
    dataset = {
        "path": "s3://bucket/data",
        **({"evaluation_split": "train"} if model == "bert" else {}),
    }
    document = run_document(
        model, workload={"dataset": dataset}, measurement={"max_steps": 4, "evaluate": True}
    )
    prepared = run_preparation(tmp_path / "prepare", document, data)
    assert prepared.exit_code == 0, prepared.output
    assert [line["name"] for line in prepared.of_kind("phase")] == [
        "import",
        "tokenise",
        "teardown",
    ]
    # The channel holds tokens only: there is nothing to tokenise again.
    run = read(tmp_path / "run", document, prepared.folder / "model")
    assert run.exit_code == 0, run.output
    (tmp_path / "alone").mkdir()
    alone = run_training(tmp_path / "alone", document, data)
    assert losses(run) == losses(alone)
    assert [line["metrics"] for line in run.of_kind("evaluation")] == [
        line["metrics"] for line in alone.of_kind("evaluation")
    ]
    assert run.of_kind("evaluation")
    assert len(losses(run)) == 4
    assert run.of_kind("environment")[0]["facts"]["run"]["tokens"]["key"] == KEY


def test_prepared_conversations_bring_their_template_and_are_trained_on(
    tmp_path: Path,
) -> None:
    suites = REPO_ROOT / "suites"
    template = suites / "finetune_chat" / "chat.jinja"
    data = tmp_path / "data"
    channel = tmp_path / "template"
    for folder, file in ((data, template.with_name("chats.jsonl")), (channel, template)):
        folder.mkdir()
        shutil.copy(file, folder)
    suite = yaml.safe_load((suites / "finetune_chat.yaml").read_text())
    dataset = {"path": "s3://bucket/data", "chat_template": "s3://bucket/template/"}
    sizes = {**suite["model"]["config"], "hidden_size": 16, "num_hidden_layers": 1}
    document = run_document(
        workload={"model": {"config": sizes}, "dataset": dataset, "sequence_length": 128},
        settings={"document_masking": True},
        measurement={"max_steps": 4, "evaluate": True},
    )
    environment = {"SM_CHANNEL_CHAT_TEMPLATE": str(channel)}
    prepared = run_preparation(tmp_path / "prepare", document, data, environment=environment)
    assert prepared.exit_code == 0, prepared.output
    saved = prepared.folder / "model" / "tokenizer" / "chat_template.jinja"
    assert saved.read_text() == template.read_text()
    run = read(tmp_path / "run", document, prepared.folder / "model")
    assert run.exit_code == 0, run.output
    assert len(losses(run)) == 4
    (evaluation,) = run.of_kind("evaluation")
    assert evaluation["metrics"]["loss"] < losses(run)[0]


def test_tokens_of_another_key_or_a_part_of_them_are_refused(tmp_path: Path, texts: Path) -> None:
    document = run_document(measurement={"max_steps": 1})
    tokens = run_preparation(tmp_path / "prepare", document, texts).folder / "model"
    other = read(tmp_path / "other", document, tokens, key="f" * 64)
    assert other.exit_code != 0
    assert f"key {KEY}; expected key {'f' * 64}" in other.failure
    manifest = json.loads((tokens / "traindyno-tokens.json").read_text())
    manifest["parts"]["train"]["sequences"] += 1
    (tokens / "traindyno-tokens.json").write_text(json.dumps(manifest))
    part = read(tmp_path / "part", document, tokens)
    assert "does not bring the prepared data" in part.failure


def test_a_preparation_refuses_a_model_indivisible_for_the_cells(
    tmp_path: Path, texts: Path
) -> None:
    """By the degrees, the stages and the plans of the suite, all of which come with the job."""
    document = run_document("gpt2", workload={"dataset": {"path": "s3://bucket/data"}})
    plan = {"degree": 2, "layers": {"colwise": ["h.*.mlp.fc"], "rowwise": ["h.*.mlp.c_proj"]}}
    asked: dict[str, Any] = {
        "divisions": [{"degree": 1}, {"degree": 3}, plan],
        "stage_counts": [2, 3],
    }
    end = run_preparation(tmp_path / "prepare", document, texts, **asked)
    assert end.exit_code != 0
    assert (
        "matrix.tensor_degree: strategy tensor with degree 3 cannot divide this gpt2" in end.failure
    )
    assert (
        "matrix.strategy: strategy pipeline asks for 3 stages, but this gpt2 has 2 blocks"
        in end.failure
    )
    assert (
        "matrix.tensor_plan: tensor_plan's path h.*.mlp.fc names no layer of this gpt2's base model"
        in end.failure
    )
    assert not (end.folder / "model" / "train").exists()
