"""A model that can't be built, or not for this suite, is refused by its configuration before
anything is started.
"""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from transformers import AutoConfig, AutoModelForCausalLM

from tests.unit.suites import unprepared_document
from traindyno.api.model_check import find_model_problems
from traindyno.core.run.processes import stage_counts, tensor_divisions
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Model, Workload
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import PipelineSchedule, Strategy, Task
from traindyno.core.suite.suite import Suite
from training.errors import WorkloadError
from training.models.model_check import check_model, refuse

CONFIG = "workload.model.config"


TASKS = {"roberta": Task.MASKED_LM, "albert": Task.MASKED_LM, "bert": Task.SEQUENCE_CLASSIFICATION}
TENSOR = {"strategy": Strategy.TENSOR, "tensor_degree": 2}
PIPELINE = {"strategy": Strategy.MESH, "pipeline_degree": 2}
REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "routers' loss": (
        {"model_type": "mixtral", "num_hidden_layers": 2, "output_router_logits": True},
        PIPELINE,
        (
            "matrix.strategy: strategy pipeline can't cut model type mixtral into stages: its "
            "loss has the routers' of"
        ),
    ),
    "fewer blocks than stages": (
        {"model_type": "llama", "num_hidden_layers": 3},
        {**PIPELINE, "pipeline_schedule": PipelineSchedule.INTERLEAVED},
        (
            "matrix.strategy: strategy pipeline asks for 4 stages, but this llama has 3 blocks; "
            "expected at least one "
        ),
    ),
    "a misspelt key": (
        {"model_type": "gpt2", "n_embed": 64},
        {},
        (
            f"{CONFIG}.n_embed: gpt2's configuration has no key n_embed; expected one such as "
            "n_embd, n_head"
        ),
    ),
    "an unknown type": (
        {"model_type": "gpt5"},
        {},
        (
            f"{CONFIG}.model_type: gpt5 is no model type of transformers; expected one such as "
            "gptj, gpt2, t5"
        ),
    ),
    "T5 for causal-lm": (
        {"model_type": "t5"},
        {},
        "workload.model: model type t5 has no causal-lm head (it can learn "
        "sequence-classification); expected one such as gpt2, llama or qwen3",
    ),
    "a model of images": (
        {"model_type": "vit"},
        {},
        (
            "workload.model: model type vit has no causal-lm head; expected one such as gpt2, "
            "llama or qwen3"
        ),
    ),
    "heads that don't divide": (
        {"model_type": "gpt2", "n_embd": 10, "n_head": 3},
        {},
        f"{CONFIG}: the hidden size is 10; expected one that 3 attention heads divide",
    ),
    "no heads": ({"model_type": "gpt2", "n_head": 0}, {}, f"{CONFIG}: got n_head 0, expected at "),
    "no layers": ({"model_type": "gpt2", "n_layer": 0}, {}, f"{CONFIG}: got n_layer 0, expected"),
    "layers below none": (
        {"model_type": "llama", "num_hidden_layers": -1},
        {},
        f"{CONFIG}: got num_hidden_layers -1, expected at least 1",
    ),
    "too few positions": (
        {"model_type": "gpt2", "n_positions": 64},
        {},
        (
            "workload.sequence_length: 128 tokens need more positions than the model's 64; "
            "expected at most 64 tokens"
        ),
    ),
    "RoBERTa's two more": (
        {"model_type": "roberta", "max_position_embeddings": 128},
        {},
        "workload.sequence_length: 128 tokens need more positions than the model's 128 "
        "(roberta needs 2 more than the tokens of a sequence); expected at most 126 tokens",
    ),
    "no tensor plan": (
        {"model_type": "opt"},
        TENSOR,
        (
            "matrix.strategy: strategy tensor has no plan for model type opt; expected one of "
            "gpt2, gptj, "
        ),
    ),
    "experts that the strategy can't shard": (
        {"model_type": "longcat_flash"},
        TENSOR,
        "matrix.strategy: strategy tensor can't shard model type longcat_flash: transformers' "
        "plan for it uses mla_kv_a_proj, moe_identity_expert, moe_tp_experts, packed_colwise; "
        "expected a plan of colwise, rowwise, ",
    ),
    "three experts": (
        {"model_type": "mixtral", "num_local_experts": 3},
        TENSOR,
        "matrix.tensor_degree: strategy tensor with degree 2 cannot divide this mixtral into "
        "equal parts: it has 3 experts in layers.*.mlp.experts; expected ",
    ),
    "one key-value head": (
        {"model_type": "llama", "num_key_value_heads": 1},
        TENSOR,
        (
            "matrix.tensor_degree: strategy tensor with degree 2 cannot divide this llama into "
            "equal parts: it has 1 "
        ),
    ),
}
GOOD: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"model_type": "gpt2", "n_layer": 2, "n_embd": 64, "n_head": 4, "attn_pdrop": 0.0}, TENSOR),
    ({"model_type": "llama", "num_key_value_heads": 8, "tie_word_embeddings": True}, TENSOR),
    ({"model_type": "roberta", "max_position_embeddings": 130}, {}),
    ({"model_type": "llama", "torch_dtype": "bfloat16", "rope_theta": 500000.0}, {}),  # older names
    ({"model_type": "xlnet"}, {}),  # its positions are -1: without a limit
    ({"model_type": "dots3_note_text"}, {}),  # its layers have different numbers of heads
    ({"model_type": "albert", "hidden_size": 64, "num_attention_heads": 4}, {}),
    ({"model_type": "bert", "hidden_dropout_prob": 0.2, "pad_token_id": 3}, {}),
]
PLAN = {
    "colwise": ["layers.*.mlp.gate_proj", "layers.*.mlp.upproj"],
    "rowwise": ["layers.*.mlp.down_proj"],
}
MESH = {"strategy": "mesh", "tensor_degree": 2, "batch_size_per_device": 4}


def workload(config: dict[str, Any]) -> Workload:
    task = TASKS.get(config.get("model_type", ""), Task.CAUSAL_LM)
    return Workload(task=task, examples=1, model=Model(config=config), sequence_length=128)


def problems(config: dict[str, Any], **settings: Any) -> list[str]:
    cell = Settings(instance="ml.p4d.24xlarge", **settings)
    lines = check_model(
        workload(config), tensor_divisions([cell]), stage_counts([cell]), model_path=None
    )
    return [str(problem) for problem in lines]


@pytest.mark.parametrize(("config", "settings", "expected"), REFUSED.values(), ids=REFUSED)
def test_an_unservable_model_is_refused(
    config: dict[str, Any], settings: dict[str, Any], expected: str
) -> None:
    (problem,) = problems(config, **settings)
    assert problem.startswith(expected)


def test_a_value_of_another_type_is_refused() -> None:
    (problem,) = problems({"model_type": "gpt2", "n_embd": "wide"})
    assert problem.startswith(f"{CONFIG}: the values make no configuration of gpt2: ")
    assert "expected int, got str" in problem


@pytest.mark.parametrize(("config", "settings"), GOOD)
def test_a_servable_model_is_not_refused(config: dict[str, Any], settings: dict[str, Any]) -> None:
    assert problems(config, **settings) == []


def test_a_job_ends_as_an_error_of_the_workload() -> None:
    with pytest.raises(WorkloadError, match="no key n_embed; expected one such as n_embd, n_head"):
        refuse(check_model(workload({"model_type": "gpt2", "n_embed": 64}), [], model_path=None))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"model_type": "gpt5"}', "gpt5"),
        ('{"model_type": "gpt2", "n_embd": "wide"}', "expected int, got str"),
        ('{"model_type": "llama", "num_attention_heads": 0}', "can't be loaded"),
    ],
)
def test_a_folder_without_a_model_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "config.json").write_text(text)
    (problem,) = check_model(workload({}), [], model_path=str(tmp_path))
    assert problem.path == "workload.model"
    assert said in problem.message


def small_suite(model: dict[str, Any], sequence_length: int = 64) -> Suite:
    document = unprepared_document()
    document["workload"] |= {"model": model, "sequence_length": sequence_length}
    return parse_suite(document)


def test_a_model_without_problems_is_checked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    small = {"n_positions": 64, "n_embd": 8, "n_head": 2, "n_layer": 1, "vocab_size": 16}
    AutoModelForCausalLM.from_config(AutoConfig.for_model("gpt2", **small)).save_pretrained(
        tmp_path / "model"
    )
    configuration = tmp_path / "model/config.json"
    suite = small_suite({"path": "./model"})
    assert find_model_problems(suite, tmp_path) == []
    with monkeypatch.context() as without_check:
        without_check.setitem(sys.modules, "training.models.model_check", None)
        assert find_model_problems(suite, tmp_path) == []
        with pytest.raises(ImportError):
            find_model_problems(small_suite({"path": "./model"}, sequence_length=32), tmp_path)
    configuration.write_text('{"model_type": "gpt2", "n_positions": 32}')
    for _ in range(2):
        (problem,) = find_model_problems(suite, tmp_path)
        assert "expected at most 32 tokens" in problem.message
    (tmp_path / "model/model.safetensors").unlink()
    configuration.write_text('{"model_type": "gpt2", "n_positions": 64}')
    (problem,) = find_model_problems(suite, tmp_path)
    assert "it has no weights" in problem.message


def test_an_unwritable_cache_folder_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert find_model_problems(small_suite({"config": {"model_type": "gpt2"}}), tmp_path) == []


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"training": {**MESH, "tensor_plan": PLAN}}, "training.tensor_plan"),
        ({"training": MESH, "matrix": {"tensor_plan": [None, PLAN]}}, "matrix.tensor_plan"),
        (
            {"include": [{"precision": "bf16"}, {**MESH, "tensor_plan": PLAN}]},
            "include[1].tensor_plan",
        ),
        ({"training": {"strategy": "tensor", "tensor_plan": PLAN}}, "training.tensor_plan"),
    ],
)
def test_a_misspelt_layer_of_a_plan_is_found_at_its_place_in_the_suite(
    changes: dict[str, Any], place: str, tmp_path: Path
) -> None:
    document = unprepared_document()
    llama = {"model_type": "llama", "num_hidden_layers": 2, "vocab_size": 64}
    document["workload"] |= {"model": {"config": llama}, "sequence_length": 64}
    matrix = {"instance": ["ml.g5.12xlarge"], **changes.get("matrix", {})}
    suite = parse_suite({**document, "baseline": {}, "training": {}, **changes, "matrix": matrix})
    (problem,) = find_model_problems(suite, tmp_path)
    assert problem.path == place
    assert "path layers.*.mlp.upproj names no layer of this llama's" in problem.message
    assert "expected a path such as layers.*.mlp.up_proj" in problem.message


@pytest.mark.parametrize(
    "model", [{"config": {"model_type": "gpt2", "n_embed": 64}}, {"path": "./model"}]
)
def test_a_plan_ends_with_the_line_of_the_problem(tmp_path: Path, model: dict[str, Any]) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model/config.json").write_text('{"model_type": "gpt2", "n_positions": 64}')
    document = unprepared_document()
    document["workload"]["model"] = model
    (tmp_path / "suite.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
    ran = subprocess.run(
        [sys.executable, "-m", "traindyno", "plan", tmp_path / "suite.yaml"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    lines = (tmp_path / "suite.yaml").read_text().splitlines()
    word = "n_embed" if "config" in model else "sequence_length"
    number = next(
        index for index, line in enumerate(lines, start=1) if line.strip().startswith(word)
    )
    assert ran.returncode == 2
    assert f"suite.yaml:{number}: workload." in ran.stderr.replace("\n", "")
    assert word in ran.stderr
