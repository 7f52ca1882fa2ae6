"""A model folder as a training job leaves it: its handler gives the answers that the job's samples
hold.
"""

import json
import runpy
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from packaging.requirements import Requirement

from tests.training.run_documents import run_document, run_training, write_texts
from traindyno.core.s3_keys import SAMPLES_FILE
from traindyno.core.serving.samples import differences, parse_samples
from traindyno.sagemaker.serving import GPU_VARIABLE, IMAGES
from training import inference

# A classifier is served by tests/local/test_serving.py.
MODELS = ("gpt2", "albert")


@pytest.fixture(scope="module", params=MODELS)
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model folder of a run of each task; the job's folder is above it."""
    job = tmp_path_factory.mktemp(request.param)
    document = run_document(request.param, measurement={"save_model": True, "max_steps": 3})
    end = run_training(job, document, write_texts(job / "data"))
    assert end.exit_code == 0, end.output
    beside_the_log = job / "step_log" / "job-of-a-test" / SAMPLES_FILE
    assert beside_the_log.read_text() == (job / "model" / SAMPLES_FILE).read_text()
    return job / "model"


@pytest.fixture(scope="module")
def handler(folder: Path) -> SimpleNamespace:
    """The copy in the model's folder, alone: the container has none of our packages."""
    source = folder / "code" / "inference.py"
    assert "traindyno." not in source.read_text()
    return SimpleNamespace(**runpy.run_path(str(source)))


def ask(
    handler: SimpleNamespace, model: Any, body: str, content_type: str = "application/json"
) -> str:
    answer: str = handler.output_fn(handler.predict_fn(handler.input_fn(body, content_type), model))
    return answer


def test_the_folders_handler_answers_each_sample_as_the_job_did(
    folder: Path, handler: SimpleNamespace
) -> None:
    samples = parse_samples(json.loads((folder / SAMPLES_FILE).read_text())).samples
    assert len(samples) == 8
    model = handler.model_fn(str(folder))
    answers = [
        ask(handler, model, json.dumps({"inputs": sample.inputs})).encode() for sample in samples
    ]
    assert not [*differences(samples, answers)]
    assert len(json.loads(answers[0])["predictions"]) == 5

    # Padding must not change an answer.
    together = json.loads(
        ask(handler, model, json.dumps({"inputs": [sample.inputs for sample in samples]}))
    )
    assert not [*differences(samples, [json.dumps(answer).encode() for answer in together])]

    with pytest.raises(handler.BadRequest, match="expected application/json"):
        ask(handler, model, "text", "text/csv")
    with pytest.raises(handler.BadRequest, match=r"has no texts; expected .*inputs"):
        ask(handler, model, '{"input": "text"}')
    if model.task == "masked-lm":
        with pytest.raises(
            handler.BadRequest, match=r"\[0\] times \[MASK\]; expected one \[MASK\]"
        ):
            ask(handler, model, '{"inputs": "word1"}')
    assert (folder / "code" / "requirements.txt").read_text().startswith("transformers==")


def test_a_gpu_unseen_by_pytorch_fails_the_start(
    folder: Path, handler: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert handler.model_fn(str(folder)).device.type == "cpu"
    monkeypatch.setenv(handler.GPU_VARIABLE, "1")
    with pytest.raises(
        RuntimeError, match=r"this instance type has a GPU, and PyTorch .* sees none"
    ):
        handler.model_fn(str(folder))


def test_the_lab_sets_the_variable_of_the_handler() -> None:
    assert inference.GPU_VARIABLE == GPU_VARIABLE


def test_the_installed_transformers_takes_the_containers_pytorch() -> None:
    """The endpoint installs the training's transformers into AWS's container."""
    (needed,) = {
        requirement.specifier
        for requirement in map(Requirement, metadata.requires("transformers") or ())
        if requirement.name == "torch" and requirement.specifier
    }
    for image in IMAGES.values():
        assert image.partition(":")[2].partition("-")[0] in needed
