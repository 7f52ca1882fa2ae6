"""An adapter beside weights of 4 or 16 bits trains as transformers, bitsandbytes and peft do."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM, BitsAndBytesConfig

from tests.training.strategy_cases import Case, blueprint_of, global_batch
from tests.training.test_adapter import ADAPTER, BATCHES, TRAINED, adapted, losses_of, placed
from traindyno.core.suite.choices import BaseWeights, Precision, Task
from training.models.blueprint import IsWanted, NamedValues
from training.models.four_bits import import_bitsandbytes, is_of_4_bits
from training.models.model import empty_model
from training.models.objective import Objective
from training.run.saving_adapters import AdaptedForm, save_adapted

pytestmark = pytest.mark.usefixtures("of_one_thread")

STEPS = 20


def saved_base(folder: Path) -> Path:
    plain = Case(model="llama", options=TRAINED, layer_count=2)
    blueprint_of(plain).materialise(torch.device("cpu")).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("kind", "precision", "tolerance"),
    [
        (BaseWeights.NF4, Precision.FP32, 1e-5),
        (BaseWeights.NF4, Precision.BF16, 2e-3),
        (BaseWeights.BF16, Precision.BF16, 2e-3),
    ],
)
def test_twenty_steps_equal_the_libraries_with_a_plain_loop(
    kind: BaseWeights, precision: Precision, tolerance: float, tmp_path: Path
) -> None:
    case = adapted("llama", base_weights=kind, precision=precision)
    strategy = placed(case)
    own = {name: tensor.detach().clone() for name, tensor in strategy.named_tensors().items()}
    dtype = torch.bfloat16 if precision is Precision.BF16 else torch.float32
    options: dict[str, Any] = {"dtype": dtype}
    if kind is BaseWeights.NF4:
        import_bitsandbytes()
        options["quantization_config"] = BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=dtype
        )
    base = AutoModelForCausalLM.from_pretrained(saved_base(tmp_path), **options)
    config = LoraConfig(r=ADAPTER.rank, lora_alpha=ADAPTER.scale, target_modules="all-linear")
    theirs = get_peft_model(base, config)
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if "lora_" in name:
                parameter.copy_(own[name.removeprefix("base_model.model.")])
    autocast = torch.autocast("cpu", dtype) if precision is Precision.BF16 else None
    objective = Objective(theirs, Task.CAUSAL_LM, autocast).train()
    trained = [
        parameter_of_peft
        for parameter_of_peft in theirs.parameters()
        if parameter_of_peft.requires_grad
    ]
    optimizer = torch.optim.AdamW(trained, lr=3e-3, weight_decay=0.0, fused=True)
    expected = []
    for step in range(STEPS):
        loss = objective(**global_batch("llama", step % BATCHES))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        expected.append(float(loss.detach()))
    losses = losses_of(case, strategy, STEPS)
    assert max(abs(a - b) for a, b in zip(losses, expected, strict=True)) <= tolerance
    assert losses[0] - losses[-1] > 1e-3


def test_the_merge_is_into_dequantised_weights_and_the_head_is_whole(
    tmp_path: Path,
) -> None:
    case = adapted("llama", base_weights=BaseWeights.NF4)
    strategy = placed(case)
    losses_of(case, strategy, 3)
    named = strategy.named_tensors()
    quantised = {name for name, tensor in named.items() if is_of_4_bits(tensor)}
    assert len(quantised) == 2 * 7
    assert not any("lm_head" in name or "embed" in name for name in quantised)
    blueprint = blueprint_of(case)
    form = AdaptedForm(config=blueprint.adapter, base_name=None, base=None, is_merged=True)
    empty = empty_model(Task.CAUSAL_LM, deepcopy(blueprint.config))
    save_adapted(form, strategy.stream_state_dict(), empty, None, tmp_path)
    merged = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    inputs = {"input_ids": global_batch("llama", 0)["input_ids"]}
    strategy.set_training(False)
    with torch.no_grad():
        expected = strategy._objective.model(**inputs).logits  # type: ignore[attr-defined]
        assert (merged(**inputs).logits - expected).abs().max() < 1e-4


def test_each_weight_takes_half_a_byte_and_is_read_and_quantised_alone() -> None:
    case = adapted("llama", base_weights=BaseWeights.NF4)
    blueprint = blueprint_of(case)
    open_reads: list[str] = []

    def watched(is_wanted: IsWanted) -> NamedValues:
        for name, whole in blueprint.values(is_wanted):
            assert not [
                tensor_name
                for tensor_name in open_reads
                if tensor_name in still_wide(blueprint.model)
            ]
            open_reads.append(name)
            yield name, whole

    model = replace(blueprint, values=watched).materialise(torch.device("cpu"))
    layers = [module for module in model.modules() if type(module).__name__ == "Linear4bit"]
    assert len(layers) == 2 * 14  # peft's own layers have this name too
    quantised = {name for name, parameter in model.named_parameters() if is_of_4_bits(parameter)}
    held = sum(
        parameter.numel() for name, parameter in model.named_parameters() if name in quantised
    )
    plain = blueprint_of(replace(case, options=TRAINED)).model.named_parameters()
    assert held == sum(parameter.numel() // 2 for name, parameter in plain if "proj" in name)


def still_wide(model: torch.nn.Module) -> set[str]:
    """The weights of 4 bits that have a value and are not quantised."""
    return {
        name
        for name, parameter in model.named_parameters()
        if is_of_4_bits(parameter) and parameter.numel() and parameter.dtype is not torch.uint8
    }
