"""Reinforcement as anyone trains with it: TRL's GRPOTrainer, with the callback that measures its
steps.

A small decoder with random weights is rewarded for answers with the letter e. For a model of your
own: --model_name_or_path, a folder or a Hub id; for a task of your own, another reward.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
from trl import GRPOConfig, GRPOTrainer

from traindyno.callbacks.hf_trainer import StepLogCallback

END = "<|end|>"


@dataclass
class Chosen:
    model_name_or_path: str | None = None


def reward(completions: list[str], **_: Any) -> list[float]:
    """The share of letters e in each answer."""
    return [text.count("e") / max(len(text), 1) for text in completions]


def bytes_tokenizer() -> PreTrainedTokenizerFast:
    """A token for each byte, and one that ends a text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate([END, *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=END, padding_side="left"
    )


def load(path: str | None) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    if path is not None:
        tokenizer = AutoTokenizer.from_pretrained(path, padding_side="left")
        return AutoModelForCausalLM.from_pretrained(path), tokenizer
    own = bytes_tokenizer()
    config = LlamaConfig(
        vocab_size=len(own),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        pad_token_id=own.pad_token_id,
        bos_token_id=None,
        eos_token_id=own.eos_token_id,
    )
    return LlamaForCausalLM(config), own


def main() -> None:
    chosen, arguments = HfArgumentParser((Chosen, GRPOConfig)).parse_args_into_dataclasses()
    files = [str(path) for path in sorted(Path(os.environ["SM_CHANNEL_TRAIN"]).glob("*.jsonl"))]
    model, tokenizer = load(chosen.model_name_or_path)
    trainer = GRPOTrainer(
        model=model,
        reward_funcs=reward,
        args=arguments,
        train_dataset=load_dataset("json", data_files=files, split="train"),
        processing_class=tokenizer,
        callbacks=[StepLogCallback()],
    )
    trainer.train()
    trainer.save_model(os.environ.get("SM_MODEL_DIR", "model"))


if __name__ == "__main__":
    main()
