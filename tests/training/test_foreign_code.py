"""Python code that is stored with a model runs in the jobs of a suite that allows it, and nowhere
else.
"""

import io
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from transformers import AutoConfig, AutoModelForCausalLM

from tests.training.family_sweep import small_tokenizer
from tests.training.run_documents import KEY, run_document, run_training, write_texts
from tests.training.strategy_cases import LLAMA
from tests.unit.suites import unprepared_document
from traindyno.api.model_check import find_model_problems, model_lines
from traindyno.core.suite.checks.suite_check import parse_suite

AUTO_MAP = {
    "AutoConfig": "configuration_planted.PlantedConfig",
    "AutoModel": "modeling_planted.PlantedForCausalLM",
    "AutoModelForCausalLM": "modeling_planted.PlantedForCausalLM",
    "AutoTokenizer": [
        "tokenization_planted.PlantedTokenizer",
        "tokenization_planted.PlantedTokenizer",
    ],
    "AutoProcessor": "processing_planted.PlantedProcessor",
    "AutoImageProcessor": "image_processing_planted.PlantedImageProcessor",
    "AutoFeatureExtractor": "feature_extraction_planted.PlantedFeatureExtractor",
}
CODE = {
    "configuration_planted.py": """
from transformers import LlamaConfig
class PlantedConfig(LlamaConfig):
    model_type = "{kind}"
""",
    "modeling_planted.py": """
from transformers import LlamaForCausalLM
from .configuration_planted import PlantedConfig
class PlantedForCausalLM(LlamaForCausalLM):
    config_class = PlantedConfig
""",
    "tokenization_planted.py": """
from transformers import PreTrainedTokenizerFast
class PlantedTokenizer(PreTrainedTokenizerFast):
    pass
""",
    "processing_planted.py": "class PlantedProcessor: pass",
    "image_processing_planted.py": "class PlantedImageProcessor: pass",
    "feature_extraction_planted.py": "class PlantedFeatureExtractor: pass",
    "custom_generate/generate.py": "def generate(model, **options): pass",
    "setup.py": "",
    "__init__.py": "",
    "sitecustomize.py": "",
    "model.py": "",
    "config.py": "",
    "tokenizer.py": "",
}


class WritesMarker:
    """Pickled: it writes a file where it is loaded."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return Path.write_text, (self.marker, "ran")


def plant(folder: Path, kind: str) -> Path:
    """A folder of a model and a tokenizer, with code in each file that transformers could import.

    Returns the file that this code writes.
    """
    marker = folder.parent / "ran"
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **LLAMA))
    model.save_pretrained(folder)
    small_tokenizer().save_pretrained(folder)
    for name, text in CODE.items():
        (folder / name).parent.mkdir(exist_ok=True)
        written = f"with open({str(marker)!r}, 'a') as file: file.write({name!r} + '\\n')\n"
        (folder / name).write_text(written + text.replace("{kind}", kind))
    for name in (
        "config.json",
        "tokenizer_config.json",
        "processor_config.json",
        "preprocessor_config.json",
    ):
        file = folder / name
        document = json.loads(file.read_text()) if file.exists() else {}
        document |= {"auto_map": AUTO_MAP}
        if name == "config.json":
            document |= {"model_type": kind, "architectures": ["PlantedForCausalLM"]}
        file.write_text(json.dumps(document))
    (folder / "chat_template.jinja").write_text("{{ ''.__class__.__mro__[1].__subclasses__() }}")
    return marker


def suite_document(folder: Path, **workload: Any) -> dict[str, Any]:
    document = unprepared_document()
    document["workload"] |= {
        "task": "causal-lm",
        "model": f"./{folder.name}",
        "sequence_length": 16,
        **workload,
    }
    return document


def jobs(folder: Path, model: Path, **workload: Any) -> list[Any]:
    """A preparation and a run."""
    data = write_texts(folder / "data")
    document = run_document(
        workload={
            "model": {"path": "s3://bucket/model"},
            "tokenizer": None,
            "label_count": None,
            **workload,
        },
        measurement={"max_steps": 2, "save_model": True},
    )
    preparation = {
        "execution_id": "execution",
        "key": KEY,
        "instance": "local.cpu",
        "packing": True,
    }
    ends = []
    for name, asked in (("run", document), ("prepare", {**document, "preparation": preparation})):
        (folder / name).mkdir()
        ends.append(
            run_training(folder / name, asked, data, environment={"SM_CHANNEL_MODEL": str(model)})
        )
    return ends


@pytest.mark.parametrize("kind", ["planted", pytest.param("llama", marks=pytest.mark.nightly)])
def test_no_code_of_a_folder_runs_in_plan_preparation_and_job(kind: str, tmp_path: Path) -> None:
    """A model type of transformers is loaded by transformers' own code; another one is refused."""
    model = tmp_path / "model"
    marker = plant(model, kind)
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(suite_document(model), sort_keys=False))
    planned = subprocess.run(
        [sys.executable, "-m", "traindyno", "plan", tmp_path / "suite.yaml"],
        input="y\n" * 20,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
    )
    problems = find_model_problems(parse_suite(suite_document(model)), tmp_path)
    ends = jobs(tmp_path, model)
    assert not marker.exists(), marker.read_text()
    if kind == "llama":
        assert problems == []
        assert [end.exit_code for end in ends] == [0, 0], ends[0].output + ends[1].output
        return
    (problem,) = problems
    for text in (problem.message, *(end.failure for end in ends)):
        assert "needs Python code that is stored with it" in text
        assert (
            "expected a model type and a tokenizer of transformers, or "
            "workload.trust_remote_code: true"
        ) in text
    assert planned.returncode == 2
    assert "[y/N]" not in planned.stdout + planned.stderr
    assert all(end.exit_code != 0 for end in ends)


def test_an_allowing_suite_says_so_and_runs_the_code_in_its_jobs_only(tmp_path: Path) -> None:
    model = tmp_path / "model"
    marker = plant(model, "planted")
    suite = parse_suite(suite_document(model, trust_remote_code=True))
    assert find_model_problems(suite, tmp_path) == []
    (line,) = model_lines(suite, tmp_path)
    assert (
        line
        == "model: jobs run Python code that is stored with ./model (workload.trust_remote_code)"
    )
    assert not marker.exists()
    ends = jobs(tmp_path, model, trust_remote_code=True)
    assert [end.exit_code for end in ends] == [0, 0], ends[0].output + ends[1].output
    assert {"configuration_planted.py", "modeling_planted.py", "tokenization_planted.py"} <= {
        *marker.read_text().splitlines()
    }


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_pickled_file_of_weights_runs_nothing(is_zip: bool, tmp_path: Path) -> None:
    model = tmp_path / "model"
    marker = plant(model, "llama")
    (model / "model.safetensors").unlink()
    content = io.BytesIO()
    torch.save({"weight": WritesMarker(marker)}, content, _use_new_zipfile_serialization=is_zip)
    (model / "pytorch_model.bin").write_bytes(content.getvalue())
    pickle.loads(pickle.dumps(WritesMarker(marker)))
    assert marker.exists()  # it does run where a pickle is trusted
    marker.unlink()
    (problem,) = find_model_problems(parse_suite(suite_document(model)), tmp_path)
    assert "can't be loaded" in problem.message
    ends = jobs(tmp_path, model)
    assert all(end.exit_code != 0 and "can't be loaded" in end.failure for end in ends)
    assert not marker.exists()
