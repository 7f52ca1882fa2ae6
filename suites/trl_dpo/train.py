"""Preferences as anyone trains them: TRL's DPOTrainer, with the callback that measures its steps.

A small decoder with random weights learns which of two answers is preferred. For a model of your
own: --model_name_or_path, a folder or a Hub id.
"""

import os
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

from datasets import load_dataset
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    HfArgumentParser,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from trl import DPOConfig, DPOTrainer

from traindyno.callbacks.hf_trainer import StepLogCallback

END = "<|end|>"


@dataclass
class Chosen:
    model_name_or_path: str | None = None


def bytes_tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, and one that ends a text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([END, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=END, pad_token=END)


def load(path: str | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if path is not None:
        return AutoModelForCausalLM.from_pretrained(path), AutoTokenizer.from_pretrained(path)
    tokenizer = bytes_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
    )
    return LlamaForCausalLM(config), tokenizer


def main() -> None:
    chosen, arguments = HfArgumentParser((Chosen, DPOConfig)).parse_args_into_dataclasses()
    files = [str(path) for path in sorted(Path(os.environ["SM_CHANNEL_TRAIN"]).glob("*.jsonl"))]
    model, tokenizer = load(chosen.model_name_or_path)
    trainer = DPOTrainer(
        model=model,
        ref_model=deepcopy(model),
        args=arguments,
        train_dataset=load_dataset("json", data_files=files, split="train"),
        processing_class=tokenizer,
        callbacks=[StepLogCallback()],
    )
    trainer.train()
    trainer.save_model(os.environ.get("SM_MODEL_DIR", "model"))


if __name__ == "__main__":
    main()
