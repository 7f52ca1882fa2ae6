"""A rank materialises its own part of a model, with the values that one process gives it."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM, BertConfig, BertModel, PreTrainedModel

from tests.training.forked import run_group
from tests.training.sharded_models import CPU, Model, place_all, save, values_of
from tests.training.strategy_cases import ENCODER
from traindyno.core.suite.choices import Task
from training.models.saved_values import SavedTensor, find_saved

GPT2: dict[str, Any] = {
    "model_type": "gpt2",
    "vocab_size": 400,
    "n_embd": 64,
    "n_layer": 8,
    "n_head": 4,
    "n_positions": 16,
}
BERT: dict[str, Any] = {"model_type": "bert", **ENCODER}
PROCESSES = 4
CUTS: list[dict[str, Any]] = [
    {"strategy": "fsdp"},
    {"strategy": "tensor", "tensor_degree": PROCESSES},
    {"strategy": "pipeline", "pipeline_degree": PROCESSES, "micro_batches": PROCESSES},
]
WHOLE: list[dict[str, Any]] = [{"strategy": "ddp"}]
# The tracker counts the slices of biases and norms in blocks.
ROUNDING_BYTES = 100_000
SMALL_TENSORS_BYTES = 5_000


def test_ranks_hold_their_part_and_one_tensor_more_with_the_values_of_one_process(
    tmp_path: Path,
) -> None:
    drawn = Model(config=GPT2)
    expected = values_of(drawn)
    save(drawn, expected, tmp_path, shard_bytes=200_000)
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    models = [
        drawn,
        Model(config=GPT2, path=str(tmp_path)),
        Model(config=BERT, task=Task.MASKED_LM),
    ]
    by_rank = run_group(place_all, models, [*CUTS, *WHOLE], processes=PROCESSES)
    all_expected = [expected, expected, values_of(models[-1])]
    for number, values in enumerate(all_expected):
        for placed in by_rank[0][number]:
            assert placed.state.keys() == values.keys()
            assert all(torch.equal(placed.state[name], tensor) for name, tensor in values.items())
    whole = _bytes(expected)
    largest = max(tensor.numel() * tensor.element_size() for tensor in expected.values())
    for number, rank in ((number, rank) for number in (0, 1) for rank in range(PROCESSES)):
        for placed, cut in zip(by_rank[rank][number], CUTS, strict=False):
            # PyTorch puts gathered columns side by side in another tensor of their size.
            gathered = largest * (2 if cut["strategy"] == "tensor" else 1)
            assert placed.saving_peak_bytes <= placed.kept_bytes + gathered + SMALL_TENSORS_BYTES
            assert placed.kept_bytes < 0.45 * whole
            assert placed.peak_bytes <= placed.kept_bytes + largest + ROUNDING_BYTES
        assert by_rank[rank][number][-1].kept_bytes >= whole


@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_a_saved_model_is_read_in_slices(
    tmp_path: Path, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the files is PyTorch's, which has both names of the tied weights."""
    values = gpt2_beside_its_configuration(tmp_path).state_dict()
    if file.endswith(".bin"):
        torch.save(values, tmp_path / file)
    else:
        save_file(
            {name: tensor for name, tensor in values.items() if name != "lm_head.weight"},
            tmp_path / file,
        )
    skeleton = Model(config=GPT2, path=str(tmp_path)).blueprint(strategy="single").model
    saved = find_saved(skeleton, str(tmp_path), None)
    assert saved is not None, "transformers would read the whole model in every process"
    monkeypatch.setattr("training.models.model._translated_values", None)
    read = values_of(Model(config=GPT2, path=str(tmp_path)))
    assert read.keys() == values.keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in values.items())
    path, name = saved["transformer.h.5.mlp.c_fc.weight"]
    before = bytes_read()
    part = SavedTensor(path, name, torch.float32)[5:9, 16:32]
    # What is mapped into memory is not read by calls; the table of contents is.
    assert bytes_read() - before < path.stat().st_size / 2
    assert torch.equal(part, values["transformer.h.5.mlp.c_fc.weight"][5:9, 16:32])


def bytes_read() -> int:
    """What this process has read through the kernel's read calls."""
    lines = Path("/proc/self/io").read_text().splitlines()
    (count,) = (line.split()[1] for line in lines if line.startswith("rchar:"))
    return int(count)


def gpt2_beside_its_configuration(folder: Path) -> PreTrainedModel:
    model: PreTrainedModel = AutoModelForCausalLM.from_config(AutoConfig.for_model(**GPT2))
    model.config.save_pretrained(folder)
    return model


def test_a_file_from_before_pytorch_1_6_is_read_by_transformers(tmp_path: Path) -> None:
    saved = gpt2_beside_its_configuration(tmp_path).state_dict()
    torch.save(saved, tmp_path / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    read = values_of(Model(config=GPT2, path=str(tmp_path)))
    assert all(torch.equal(read[name], tensor) for name, tensor in saved.items())


def test_a_model_saved_in_half_precision_is_trained_in_single(tmp_path: Path) -> None:
    saved = gpt2_beside_its_configuration(tmp_path).bfloat16()
    saved.save_pretrained(tmp_path)
    read = values_of(Model(config=GPT2, path=str(tmp_path)))
    for name, tensor in saved.state_dict().items():
        assert read[name].dtype is torch.float32, name
        assert torch.equal(read[name], tensor.float()), name


def test_initial_values_have_the_spread_of_transformers_own() -> None:
    values = values_of(Model(config=GPT2))
    assert values["transformer.wte.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    assert values["transformer.h.3.mlp.c_fc.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    # The module around it sets it: smaller by the root of twice the number of layers.
    assert values["transformer.h.3.mlp.c_proj.weight"].std().item() == pytest.approx(
        0.02 / 16**0.5, rel=0.05
    )
    assert torch.equal(values["transformer.h.3.ln_1.weight"], torch.ones(64))
    assert not torch.equal(
        values["transformer.h.3.mlp.c_fc.weight"], values["transformer.h.4.mlp.c_fc.weight"]
    )
    padded = values_of(Model(config=BERT, task=Task.MASKED_LM))[
        "bert.embeddings.word_embeddings.weight"
    ]
    assert padded[0].count_nonzero() == 0
    assert padded[1].count_nonzero() == 32


def test_tied_weights_stay_one_and_buffers_are_the_constructors() -> None:
    model = Model(config=BERT, task=Task.MASKED_LM).blueprint(strategy="single").materialise(CPU)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert torch.equal(
        dict(model.named_buffers())["bert.embeddings.position_ids"], torch.arange(16)[None]
    )


@pytest.mark.parametrize("format", ["safetensors", "older names"])
def test_a_saved_model_gets_a_new_head(tmp_path: Path, format: str) -> None:
    """Names that transformers translates are read by transformers."""
    config = BertConfig(**{name: value for name, value in BERT.items() if name != "model_type"})
    saved = BertModel(config)
    saved.save_pretrained(tmp_path)
    if format == "older names":
        file = tmp_path / "model.safetensors"
        tensors = {
            name.replace("LayerNorm.weight", "LayerNorm.gamma"): t
            for name, t in load_file(file).items()
        }
        save_file(tensors, file, metadata={"format": "pt"})
    model = Model(config=BERT, task=Task.SEQUENCE_CLASSIFICATION, path=str(tmp_path))
    skeleton_values = values_of(model)
    for name, tensor in saved.state_dict().items():
        assert torch.equal(skeleton_values[f"bert.{name}"], tensor), name
    assert skeleton_values["classifier.weight"].std().item() == pytest.approx(0.02, rel=0.5)
    again = values_of(model)
    assert torch.equal(skeleton_values["classifier.weight"], again["classifier.weight"])


def _bytes(values: dict[str, torch.Tensor]) -> int:
    return sum(
        tensor.numel() * tensor.element_size()
        for tensor in {id(t): t for t in values.values()}.values()
    )
