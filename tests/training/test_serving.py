"""A model folder as a training job leaves it: its handler gives the answers that the job's samples hold."""

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import transformers

from tests.training.run_documents import run_document, run_training, write_texts
from tests.training.strategy_runs import REPOSITORY, XLA_ENVIRONMENT
from tests.xla.xla_environment import make_environment
from traindyno.core.s3_keys import SAMPLES_FILE
from traindyno.core.serving.samples import differences, parse_samples
from training.serving import inference

# A classifier is served by tests/local/test_serving.py.
MODELS = ("gpt2", "albert")
NEURON_STAND_IN = Path(__file__).with_name("neuron_stand_in")


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
def handler(folder: Path) -> ModuleType:
    """The copy in the model's folder, alone: the container has none of our packages."""
    source = folder / "code" / "inference.py"
    assert "traindyno." not in source.read_text()
    spec = importlib.util.spec_from_file_location("inference_of_the_model", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def neuron_library(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(NEURON_STAND_IN))
    yield
    sys.modules.pop(inference.NEURON_LIBRARY, None)


def ask(handler: ModuleType, model: Any, body: str, content_type: str = "application/json") -> str:
    answer: str = handler.output_fn(handler.predict_fn(handler.input_fn(body, content_type), model))
    return answer


def test_the_folders_handler_answers_each_sample_as_the_job_did(folder: Path, handler: ModuleType) -> None:
    samples = parse_samples(json.loads((folder / SAMPLES_FILE).read_text())).samples
    assert len(samples) == 8
    model = handler.model_fn(str(folder))
    answers = [json.loads(ask(handler, model, json.dumps({"inputs": each.inputs}))) for each in samples]
    assert differences(samples, answers) == []
    assert len(answers[0]["predictions"]) == 5

    # Padding must not change an answer, neither in a list of texts nor in lines.
    together = json.loads(ask(handler, model, json.dumps({"inputs": [each.inputs for each in samples]})))
    lines = "\n".join(json.dumps({"inputs": each.inputs}) for each in samples)
    by_line = [json.loads(line) for line in ask(handler, model, lines, "application/jsonlines").splitlines()]
    assert differences(samples, together) == []
    assert differences(samples, by_line) == []

    with pytest.raises(handler.BadRequest, match="expected application/json or application/jsonlines"):
        ask(handler, model, "text", "text/csv")
    with pytest.raises(handler.BadRequest, match=r"has no texts; expected .*inputs"):
        ask(handler, model, '{"input": "text"}')
    if model.task == "causal-lm":
        made = json.loads(ask(handler, model, json.dumps({"inputs": "word1", "parameters": {"max_new_tokens": 3}})))
        assert made["generated_text"].startswith("word1")
    if model.task == "masked-lm":
        with pytest.raises(handler.BadRequest, match=r"\[0\] times \[MASK\]; expected one \[MASK\]"):
            ask(handler, model, '{"inputs": "word1"}')
    assert (folder / "code" / "requirements.txt").read_text().startswith("transformers==")


def test_on_inferentia_compiled_graphs_give_the_same_answers(
    folder: Path, handler: ModuleType, neuron_library: None
) -> None:
    plain = handler.load(folder, torch.device("cpu"))
    compiled = handler.model_fn(str(folder))
    assert isinstance(compiled.logits, handler.NeuronGraphs)
    samples = parse_samples(json.loads((folder / SAMPLES_FILE).read_text())).samples
    together = json.loads(ask(handler, compiled, json.dumps({"inputs": [each.inputs for each in samples]})))
    assert differences(samples, together) == []
    long = " ".join([samples[0].inputs] * 100)
    (cut,) = handler.predict([long], {}, compiled)
    assert len(cut["predictions"]) == 5
    if compiled.task == "causal-lm":
        for parameters in ({"max_new_tokens": 3}, {"max_new_tokens": 1000}):
            asked = json.dumps({"inputs": ["word1", "word2 word3"], "parameters": parameters})
            assert ask(handler, compiled, asked) == ask(handler, plain, asked)
        for model in (compiled, plain):
            with pytest.raises(handler.BadRequest, match=r"has 16 tokens or more; expected up to 15"):
                handler.predict([long], {"max_new_tokens": 3}, model)


def test_a_model_is_compiled_for_the_lengths_that_it_takes() -> None:
    assert [inference.neuron_lengths(longest) for longest in (1024, 300, 16)] == [[128, 512], [128, 300], [16]]


@pytest.mark.parametrize("kind", ["BertForSequenceClassification", "GPT2ForSequenceClassification"])
def test_a_compiled_classifier_takes_texts_of_each_length(kind: str, neuron_library: None) -> None:
    torch.manual_seed(0)
    model_class = getattr(transformers, kind)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 50, "pad_token_id": 0}
    model = model_class(model_class.config_class(num_labels=3, **sizes)).eval()
    graphs = inference.NeuronGraphs(model, 0, [8, 16])
    ids = torch.randint(1, 50, (3, 16))
    for width in (1, 7, 8, 9, 16):
        mask = torch.ones(3, width, dtype=torch.long)
        mask[0, (width + 1) // 2 :] = 0
        batch = ids[:, :width] * mask
        with torch.inference_mode():
            expected = model(input_ids=batch, attention_mask=mask).logits
            torch.testing.assert_close(graphs(batch, mask), expected)


def test_on_inferentia_xla_compiles_all_graphs_before_the_first_request(folder: Path) -> None:
    python = make_environment(REPOSITORY / ".envs" / "xla")
    ended = subprocess.run(
        [str(python), str(Path(__file__).with_name("neuron_worker.py")), str(folder), SAMPLES_FILE],
        env={**os.environ, "OMP_NUM_THREADS": "1", **XLA_ENVIRONMENT},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-4000:]
    found = json.loads(ended.stdout.splitlines()[-1])
    samples = parse_samples(json.loads((folder / SAMPLES_FILE).read_text())).samples
    assert differences(samples, found["answers"]) == []
    assert found["at_start"] >= 1
    assert found["later"] == 0
