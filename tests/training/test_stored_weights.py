"""Stored weights are what they mean: whatever is stored in another form is refused before a job,
with what to do.
"""

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSequenceClassification
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES

from tests.training.family_sweep import small_tokenizer
from tests.training.run_documents import run_document, run_training
from tests.training.sharded_models import Model, values_of
from tests.training.small_models import small_values
from tests.training.strategy_cases import ENCODER, LLAMA
from tests.training.word_tokenizer import word_tokenizer
from tests.unit.suites import unprepared_document
from traindyno.api.model_check import model_lines
from traindyno.core.run.workload import Model as AskedModel
from traindyno.core.run.workload import Workload
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.choices import Task
from training.errors import WorkloadError
from training.models.model_check import check_model
from training.models.model_config import CLASSIFIED_BY_THE_END_TOKEN, model_config

QUERY = "model.layers.0.self_attn.q_proj.weight"
Tensors = dict[str, torch.Tensor]
Change = Callable[[Tensors, dict[str, Any]], None]
FP8 = {"quant_method": "fp8", "weight_block_size": [16, 16], "activation_scheme": "dynamic"}
WORDS = {"bad": "negative", "so": "neutral", "good": "positive"}


def save_llama(folder: Path) -> Path:
    AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **LLAMA)).save_pretrained(folder)
    return folder


def save_classifier(folder: Path, kind: str = "bert", *, classes: int = 3, **values: Any) -> Path:
    config = AutoConfig.for_model(
        kind, **(ENCODER if kind == "bert" else LLAMA), num_labels=classes, **values
    )
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    return folder


def workload_of(model: AskedModel, task: Task, **values: Any) -> Workload:
    return Workload(task=task, examples=1, model=model, sequence_length=16, **values)


def problems(folder: Path, task: Task = Task.CAUSAL_LM, **values: Any) -> list[str]:
    asked = workload_of(AskedModel(path=str(folder)), task, **values)
    return [
        str(problem)
        for problem in check_model(asked, [], model_path=str(folder), weights_path=str(folder))
    ]


def rewrite(folder: Path, change: Change) -> None:
    file = folder / "model.safetensors"
    config_file = folder / "config.json"
    tensors = load_file(file)
    config = json.loads(config_file.read_text())
    change(tensors, config)
    save_file(
        {name: tensor.contiguous() for name, tensor in tensors.items()},
        file,
        metadata={"format": "pt"},
    )
    config_file.write_text(json.dumps(config))


def float8_with_scales(tensors: Tensors, _: dict[str, Any]) -> None:
    tensors[QUERY] = tensors[QUERY].to(torch.float8_e4m3fn)
    tensors[f"{QUERY}_scale_inv"] = torch.ones(2, 2)


def plain_with_scales(tensors: Tensors, _: dict[str, Any]) -> None:
    tensors[f"{QUERY}_scale"] = torch.ones(1)


def eight_bits(tensors: Tensors, _: dict[str, Any]) -> None:
    tensors[QUERY] = tensors[QUERY].to(torch.int8)
    tensors[QUERY.replace("weight", "SCB")] = torch.ones(32)


def four_bits(tensors: Tensors, _: dict[str, Any]) -> None:
    tensors[QUERY] = torch.zeros(512, 1, dtype=torch.uint8)
    for name in ("absmax", "quant_map", "quant_state.bitsandbytes__nf4"):
        tensors[f"{QUERY}.{name}"] = torch.zeros(16)


def packed_integers(tensors: Tensors, _: dict[str, Any]) -> None:
    del tensors[QUERY]
    path = QUERY.removesuffix("weight")
    tensors |= {
        f"{path}{name}": torch.zeros(4, 4, dtype=torch.int32)
        for name in ("qweight", "qzeros", "g_idx")
    }
    tensors[f"{path}scales"] = torch.ones(4, 4, dtype=torch.float16)


def part_of_an_adapter(tensors: Tensors, _: dict[str, Any]) -> None:
    path = QUERY.removesuffix(".weight")
    tensors[f"{path}.base_layer.weight"] = tensors.pop(QUERY)
    tensors[f"{path}.lora_A.default.weight"] = torch.zeros(2, 32)


def a_bias_that_the_configuration_denies(tensors: Tensors, _: dict[str, Any]) -> None:
    tensors[QUERY.replace("weight", "bias")] = torch.ones(32)


def another_width(_: Tensors, config: dict[str, Any]) -> None:
    config["intermediate_size"] = 48


def names_of_a_wrapper(tensors: Tensors, _: dict[str, Any]) -> None:
    for name in list(tensors):
        tensors[f"_orig_mod.{name}"] = tensors.pop(name)


def configured(key: str, value: Any) -> Change:
    def change(_: Tensors, config: dict[str, Any]) -> None:
        config[key] = value

    return change


REFUSED: dict[str, tuple[Change, str]] = {
    "float8 with scales": (
        float8_with_scales,
        f"stored as float8_e4m3fn ({QUERY}); expected plain weights",
    ),
    "plain with scales": (
        plain_with_scales,
        f"lacks ({QUERY}_scale), such as scales of quantised weights",
    ),
    "8 bits": (eight_bits, "stored as int8"),
    "4 bits": (four_bits, "stored as uint8"),
    "packed integers": (packed_integers, "stored as int32"),
    "adapter within": (part_of_an_adapter, "parts of an adapter"),
    "bias": (a_bias_that_the_configuration_denies, "q_proj.bias), such as"),
    "another width": (
        another_width,
        "is stored with shape [32, 64], and its configuration says [32, 48]",
    ),
    "names of a wrapper": (
        names_of_a_wrapper,
        "no stored tensor has the name of a weight of llama",
    ),
    "fp8": (
        configured("quantization_config", FP8),
        "has a quantization_config (fp8); expected plain weights",
    ),
    "unknown method": (
        configured("quantization_config", {"quant_method": "of tomorrow"}),
        "(of tomorrow)",
    ),
    "other weights file": (
        configured("transformers_weights", "model.fp8.safetensors"),
        "model.fp8.safetensors",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_weights_with_more_meaning_than_their_numbers_are_refused(
    case: str, tmp_path: Path
) -> None:
    change, said = REFUSED[case]
    rewrite(save_llama(tmp_path), change)
    (problem,) = problems(tmp_path)
    assert problem.startswith("workload.model: ")
    assert said in problem
    assert "expected " in problem


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("size", [0, 7, 1000, -1000])
def test_damaged_files_are_refused(name: str, size: int, tmp_path: Path) -> None:
    save_llama(tmp_path)
    if name.endswith(".bin"):
        torch.save(load_file(tmp_path / "model.safetensors"), tmp_path / name)
        (tmp_path / "model.safetensors").unlink()
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[:size])
    (problem,) = problems(tmp_path)
    assert "a file of its weights can't be loaded: it is cut off, damaged" in problem


def test_missing_files_are_refused(tmp_path: Path) -> None:
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model("llama", **LLAMA))
    model.save_pretrained(tmp_path / "sharded", max_shard_size="20KB")
    next((tmp_path / "sharded").glob("*-00002-of-*.safetensors")).unlink()
    (problem,) = problems(tmp_path / "sharded")
    assert "00002-of" in problem
    (save_llama(tmp_path / "none") / "model.safetensors").unlink()
    (problem,) = problems(tmp_path / "none")
    assert "it has no weights; expected model.safetensors, pytorch_model.bin" in problem
    (save_llama(tmp_path / "adapter") / "adapter_config.json").write_text("{}")
    (problem,) = problems(tmp_path / "adapter")
    assert "merge the adapter" in problem


def test_a_head_stored_under_another_name_is_refused(tmp_path: Path) -> None:
    def rename(tensors: Tensors, _: dict[str, Any]) -> None:
        tensors["output.weight"] = tensors.pop("lm_head.weight")

    rewrite(save_llama(tmp_path), rename)
    (problem,) = problems(tmp_path)
    assert (
        "its head lm_head.weight is not stored, and output.weight of the same shape is" in problem
    )
    assert problems(tmp_path, Task.SEQUENCE_CLASSIFICATION) == []  # whose head is new


def test_an_attention_only_in_a_runs_image_is_taken(tmp_path: Path) -> None:
    def name_it(_: Tensors, config: dict[str, Any]) -> None:
        config["attn_implementation"] = config["_attn_implementation"] = "flash_attention_2"

    rewrite(save_llama(tmp_path), name_it)
    assert problems(tmp_path) == []


def half_precision(tensors: Tensors, _: dict[str, Any]) -> None:
    for name in tensors:
        tensors[name] = tensors[name].to(torch.bfloat16)


def old_buffers(tensors: Tensors, _: dict[str, Any]) -> None:
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = torch.ones(4)
    tensors["model.layers.0.self_attn.bias"] = torch.ones(1, 1, 64, 64, dtype=torch.bool)


@pytest.mark.parametrize("change", [half_precision, old_buffers])
def test_plain_weights_are_accepted(change: Change, tmp_path: Path) -> None:
    rewrite(save_llama(tmp_path), change)
    assert problems(tmp_path) == []


@pytest.mark.parametrize("kind", ["bert", "llama"])
def test_a_head_for_another_number_of_labels_is_a_new_one(kind: str, tmp_path: Path) -> None:
    save_classifier(tmp_path, kind)
    assert problems(tmp_path, Task.SEQUENCE_CLASSIFICATION, label_count=7) == []
    assert problems(tmp_path, Task.SEQUENCE_CLASSIFICATION, label_count=3) == []
    model = Model(config={}, task=Task.SEQUENCE_CLASSIFICATION, path=str(tmp_path), label_count=7)
    values = values_of(model)
    stored = load_file(tmp_path / "model.safetensors")
    head = "classifier.weight" if kind == "bert" else "score.weight"
    assert values[head].shape == (7, 32)
    assert values[head].std() > 0
    assert all(
        torch.equal(values[name], tensor)
        for name, tensor in stored.items()
        if not name.startswith(head[:5])
    )
    assert torch.equal(values_of(model)[head], values[head])


@pytest.mark.parametrize("kind", ["regression", "multi_label_classification"])
def test_another_problem_than_one_class_of_each_text_is_refused(kind: str, tmp_path: Path) -> None:
    save_classifier(tmp_path, problem_type=kind)
    (problem,) = problems(tmp_path, Task.SEQUENCE_CLASSIFICATION, label_count=3)
    assert f"problem_type {kind}" in problem


def test_a_loss_unknown_to_the_task_is_refused() -> None:
    asked = workload_of(
        AskedModel(config={"model_type": "bamba", "z_loss_coefficient": 0.1}), Task.CAUSAL_LM
    )
    (problem,) = check_model(asked, [], model_path=None)
    assert "z_loss_coefficient 0.1" in str(problem)


def learned_classifier(folder: Path, names: list[str]) -> None:
    """Sure of each text: the head reads the class from one word."""
    save_classifier(folder, classes=len(names), id2label=dict(enumerate(names)))
    word_tokenizer(
        ["[PAD]", "[UNK]", *WORDS], pad_token="[PAD]", unk_token="[UNK]"
    ).save_pretrained(folder)
    model = AutoModelForSequenceClassification.from_pretrained(folder)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    tokens = torch.tensor([[2], [3], [4]])
    target = torch.tensor(
        [[name.lower() for name in names].index(label) for label in WORDS.values()]
    )
    for _ in range(60):
        loss = torch.nn.functional.cross_entropy(model(input_ids=tokens).logits, target)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    assert loss.item() < 0.05
    model.save_pretrained(folder)


@pytest.mark.parametrize(
    "names", [["positive", "negative", "neutral"], ["Neutral", "POSITIVE", "Negative"]]
)
def test_a_saved_heads_order_of_labels_is_kept(names: list[str], tmp_path: Path) -> None:
    learned_classifier(tmp_path / "model", names)
    (tmp_path / "data").mkdir()
    rows = "".join(f"{word},{label}\n" for word, label in WORDS.items())
    (tmp_path / "data/train.csv").write_text("text,label\n" + rows * 8)
    workload = {"model": {"path": "s3://bucket/model"}, "tokenizer": None, "label_count": 3}
    document = run_document(
        "bert", workload=workload, measurement={"max_steps": 1, "save_model": True}
    )
    (tmp_path / "run").mkdir()
    environment = {"SM_CHANNEL_MODEL": str(tmp_path / "model")}
    end = run_training(tmp_path / "run", document, tmp_path / "data", environment=environment)
    assert end.exit_code == 0, end.output
    (step,) = end.of_kind("step")
    assert step["loss"] < 0.1
    saved = AutoConfig.from_pretrained(tmp_path / "run/model")
    assert saved.id2label == dict(enumerate(names))


@pytest.mark.parametrize(
    ("label_count", "said"),
    [
        (
            7,
            (
                "model: a new head for label_count 7 replaces the saved one for 3 (0 positive, 1 "
                "negative, 2 neutral)"
            ),
        ),
        (
            3,
            (
                "model: its head's labels (0 positive, 1 negative, 2 neutral) keep their numbers "
                "where the data has"
            ),
        ),
    ],
)
def test_a_plan_says_the_fate_of_a_saved_head(label_count: int, said: str, tmp_path: Path) -> None:
    save_classifier(
        tmp_path / "model", id2label=dict(enumerate(["positive", "negative", "neutral"]))
    )
    document = unprepared_document()
    document["workload"] |= {
        "task": "sequence-classification",
        "model": "./model",
        "label_count": label_count,
    }
    (line,) = model_lines(parse_suite(document), tmp_path)
    assert line.startswith(said)


def test_a_tokenizer_without_the_end_token_for_a_classifier_is_refused() -> None:
    tokenizer = small_tokenizer()
    for kind in sorted(CLASSIFIED_BY_THE_END_TOKEN):
        model = AskedModel(config={"model_type": kind, **small_values(kind)})
        asked = workload_of(model, Task.SEQUENCE_CLASSIFICATION)
        with pytest.raises(
            WorkloadError, match="classifies a text by its end token, and the tokenizer adds none"
        ):
            model_config(asked, tokenizer, model_path=None)


def test_every_family_classifying_by_the_end_token_is_known() -> None:
    reading = {
        kind
        for kind, name in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES.items()
        if "[eos_mask, :]" in inspect.getsource(getattr(transformers, name).forward)
    }
    assert reading == CLASSIFIED_BY_THE_END_TOKEN
