"""The frozen weights beside an adapter: in bfloat16, or in 4 bits."""

from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from traindyno.core.suite.choices import BaseWeights
from training.errors import WorkloadError
from training.models.adapter import head_names, is_head, is_router
from training.models.four_bits import import_bitsandbytes

QUANTISATION = "nf4"


def convert_base(model: PreTrainedModel, kind: BaseWeights, lower_type: torch.dtype | None) -> None:
    """Gives the weights of ``model``, which is on the meta device, the types that they are held in.

    The ``lower_type`` is the type of the run's precision, None for fp32. A new classifier stays in
    single precision, because it is trained.
    """
    if kind is BaseWeights.FP32:
        return
    if kind is BaseWeights.NF4:
        _use_4_bits(model, lower_type or torch.float32)
    held_as = torch.bfloat16 if kind is BaseWeights.BF16 else lower_type or torch.float32
    trained = tuple(f"{name}." for name in head_names(model))
    kept = tuple(getattr(model, "_keep_in_fp32_modules_strict", None) or ())
    for name, parameter in model.named_parameters():
        is_kept = name.startswith(trained) or any(part in kept for part in name.split("."))
        if parameter.is_floating_point() and not is_kept:
            parameter.data = parameter.data.to(held_as)


def _use_4_bits(model: PreTrainedModel, compute_type: torch.dtype) -> None:
    """Replaces linear layers as transformers does, but for the head and routers."""
    layers = [
        (path, module)
        for path, module in model.named_modules()
        if type(module) is nn.Linear and not is_head(path, module, model) and not is_router(path)
    ]
    if not layers:
        raise WorkloadError(
            f"base_weights nf4 are of linear layers, and this {model.config.model_type} has none "
            "beside its head; expected base_weights bf16"
        )
    make: Any = import_bitsandbytes().nn.Linear4bit
    for path, linear in layers:
        layer = make(
            linear.in_features,
            linear.out_features,
            linear.bias is not None,
            compute_dtype=compute_type,
            compress_statistics=False,  # transformers' default
            quant_type=QUANTISATION,
            device="meta",
        )
        layer.requires_grad_(False)
        # Otherwise, an evaluation on a CPU packs the weights for inference, and no gradient passes.
        layer.support_avx512bf16_for_cpu = False
        model.set_submodule(path, layer)
    vars(model)["is_loaded_in_4bit"] = True  # peft asks for it
