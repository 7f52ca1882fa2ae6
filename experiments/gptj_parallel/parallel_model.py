"""GPT-J inside the model parallel library's wrappers, with its partition, activation checkpoints
and weights.
"""

from argparse import Namespace
from typing import Any, NamedTuple

import smdistributed.modelparallel.torch as smp
import torch
from transformers import AutoConfig, AutoModelForCausalLM
from weights import SCRATCH

FULL_MODEL = "fullmodel.pt"
LOSS_SCALE = {"scale_window": 1000, "min_scale": 1, "delayed_shift": 2}


class ParallelModel(NamedTuple):
    model: Any
    optimizer: Any
    device: torch.device
    parameters: int


def build_model(arguments: Namespace, weights: str) -> ParallelModel:
    """Builds the model with the weights of a folder or of a Hub id.

    The pretrained weights are loaded once the library has divided the model.
    """
    configuration = AutoConfig.from_pretrained(weights, cache_dir=arguments.cache_dir)
    if arguments.config_overrides:
        configuration.update_from_string(arguments.config_overrides)
    data_type = torch.float16 if arguments.fp16 else torch.float32
    with smp.model_creation(tensor_parallelism=smp.tp_size() > 1, dtype=data_type):
        whole = AutoModelForCausalLM.from_config(configuration)
    parameters = sum(parameter.numel() for parameter in whole.parameters())
    has_gpu = torch.cuda.is_available()
    model = smp.DistributedModel(whole, trace_device="gpu" if has_gpu else "cpu")
    divide(model.get_module(), arguments)
    optimizer = distributed_optimizer(model, arguments)
    if arguments.finetune_6b and not arguments.config_overrides:
        load_weights(weights, arguments)
    device = torch.device("cuda", smp.local_rank()) if has_gpu else torch.device("cpu")
    return ParallelModel(model, optimizer, device, parameters)


def divide(module: Any, arguments: Namespace) -> None:
    """Puts layers evenly on the pipeline's stages and recomputes their activations, if the
    arguments ask for it.
    """
    # Under tensor parallelism the library replaces GPT-J's list of layers by one of its own.
    is_replaced = smp.tp_size() > 1
    layers = module.transformer.seq_layers if is_replaced else module.transformer.h
    if arguments.manual_partition:
        count = len(layers)
        for number, layer in enumerate(layers):
            smp.set_partition(layer, number * smp.pp_size() // count)
    if arguments.activation_checkpointing and is_replaced:
        smp.set_activation_checkpointing(layers, strategy=arguments.activation_strategy)
    elif arguments.activation_checkpointing:
        for layer in layers:
            smp.set_activation_checkpointing(layer)


def distributed_optimizer(model: Any, arguments: Namespace) -> Any:
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.lr)
    if not arguments.fp16:
        return smp.DistributedOptimizer(optimizer)
    return smp.DistributedOptimizer(
        optimizer, static_loss_scale=None, dynamic_loss_scale=True, dynamic_loss_args=LOSS_SCALE
    )


def load_weights(weights: str, arguments: Namespace) -> None:
    """Loads a full checkpoint, which the library translates and divides: each host's first process
    writes it.
    """
    if smp.local_rank() == 0:
        SCRATCH.mkdir(exist_ok=True)
        pretrained = AutoModelForCausalLM.from_pretrained(weights, cache_dir=arguments.cache_dir)
        torch.save(pretrained.state_dict(), SCRATCH / FULL_MODEL)
    smp.barrier()
    smp.resume_from_checkpoint(str(SCRATCH), tag=FULL_MODEL, partial=False)
