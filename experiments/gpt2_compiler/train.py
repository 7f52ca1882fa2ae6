"""Trains GPT-2 with Hugging Face's Trainer, native or compiled by SageMaker Training Compiler.

For torch 1.11 and transformers 4.21 on Python 3.8. The compiler's launcher, xla_spawn, imports this
module and calls ``_mp_fn`` in each process; every other launcher runs the file.
"""

import os
from argparse import Namespace
from typing import Any

import torch
from arguments import parse_arguments
from text_blocks import in_blocks, load_text
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    Trainer,
    TrainingArguments,
    default_data_collator,
    set_seed,
)

from traindyno.callbacks import step_log
from traindyno.callbacks.hf_trainer import StepLogCallback


def main() -> None:
    arguments = parse_arguments()
    settings = trainer_settings(arguments)
    set_seed(arguments.seed)
    tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer_name)
    with step_log.phase("load"), settings.main_process_first(desc="tokenize"):
        files = arguments.train_file or os.environ.get("SM_CHANNEL_TRAIN")
        text = load_text(arguments.dataset_name, arguments.dataset_config_name, files)
        blocks = in_blocks(text, tokenizer, arguments.block_size, arguments.text_column)
    trainer = Trainer(
        model=new_model(arguments, len(tokenizer)),
        args=settings,
        train_dataset=blocks,
        tokenizer=tokenizer,  # type: ignore[call-arg]  # the name of transformers 4
        data_collator=default_data_collator,
        callbacks=[StepLogCallback()],
    )
    trainer.train()
    with step_log.phase("save"):
        trainer.save_model()


def new_model(arguments: Namespace, vocabulary_size: int) -> Any:
    """A model with random weights, as in the post, which names a model type and no weights."""
    configuration = AutoConfig.for_model(arguments.model_type)
    if arguments.config_overrides:
        configuration.update_from_string(arguments.config_overrides)
    model = AutoModelForCausalLM.from_config(configuration)
    model.resize_token_embeddings(vocabulary_size)
    return model


def trainer_settings(arguments: Namespace) -> TrainingArguments:
    passed = (
        "model_type",
        "config_overrides",
        "tokenizer_name",
        "dataset_name",
        "dataset_config_name",
        "train_file",
    )
    ours = (*passed, "text_column", "block_size")
    settings = {name: value for name, value in vars(arguments).items() if name not in ours}
    if os.environ.get("MASTER_ADDR") and not torch.cuda.is_available():
        # This Trainer starts no gloo group itself, and takes one that exists.
        torch.distributed.init_process_group("gloo")
        settings["no_cuda"] = True
    return TrainingArguments(report_to=[], **settings)


def _mp_fn(index: int) -> None:
    main()


if __name__ == "__main__":
    main()
