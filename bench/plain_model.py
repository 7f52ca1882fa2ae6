"""The model as transformers makes it, with the weights that a run of ours begins with."""

from collections.abc import Mapping

import torch
from peft import get_peft_model
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from traindyno.core.suite.choices import Task
from training.models.adapter import lora_config
from training.models.adapter_files import PREFIX
from training.models.model import build_model
from training.models.model_config import AUTO_CLASSES, model_config
from training.process.run_settings import RunSettings

Weights = Mapping[str, torch.Tensor]


def initial_weights(run: RunSettings, tokenizer: PreTrainedTokenizerBase | None) -> Weights:
    """The weights on the host by name, as the run's blueprint gives them."""
    blueprint = build_model(run.workload, run.settings, tokenizer, model_path=None)
    return blueprint.materialise(torch.device("cpu")).state_dict()


def plain_model(
    run: RunSettings, tokenizer: PreTrainedTokenizerBase | None, weights: Weights
) -> PreTrainedModel:
    config = model_config(run.workload, tokenizer, model_path=None, dropout=run.settings.dropout)
    torch.manual_seed(run.settings.seed)
    model: PreTrainedModel = AUTO_CLASSES[run.workload.task].from_config(config)
    if run.settings.adapter is None:
        model.load_state_dict(weights)
    else:
        adapted = get_peft_model(model, lora_config(model, run.settings.adapter, run.workload.task))
        adapted.load_state_dict({f"{PREFIX}{name}": tensor for name, tensor in weights.items()})
    if run.workload.task is Task.CAUSAL_LM:
        # GPT2LMHeadModel names none; Trainer then divides its loss by one label too many in each
        # row.
        model.loss_type = "ForCausalLM"
    return model if run.settings.adapter is None else adapted
