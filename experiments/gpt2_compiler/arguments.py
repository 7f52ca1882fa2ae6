"""The hyperparameters of the GPT-2 experiment, as the training toolkit passes them."""

import argparse
from typing import List, Optional


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a causal language model on text.")
    parser.add_argument(
        "--model_type", default="gpt2", help="trained from random weights, as in the post"
    )
    parser.add_argument(
        "--config_overrides", default="", help="n_embd=64,n_layer=2: a smaller model"
    )
    parser.add_argument("--tokenizer_name", default="gpt2", help="Hub id or folder")
    _add_data_arguments(parser)
    _add_training_arguments(parser)
    return parser.parse_args(arguments)


def _add_data_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dataset_name", help="on the Hub; without it the train channel's CSV, JSON or TXT files"
    )
    parser.add_argument("--dataset_config_name")
    parser.add_argument("--train_file", help="a CSV, JSON or TXT file in place of the channel's")
    parser.add_argument(
        "--text_column", help="by default the first column that is called text or sentence"
    )
    parser.add_argument("--block_size", type=int, default=512, help="tokens in one sample")


def _add_training_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--do_train", type=boolean, choices=(True,), default=True)
    parser.add_argument("--do_eval", type=boolean, choices=(False,), default=False)
    parser.add_argument("--fp16", type=boolean, default=False)
    parser.add_argument("--per_device_train_batch_size", type=int, default=10)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=6.25e-5)
    parser.add_argument("--num_train_epochs", type=float, default=100)
    parser.add_argument("--max_steps", type=int, default=-1, help="ends earlier than the epochs")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--dataloader_drop_last", type=boolean, default=True)
    parser.add_argument("--save_strategy", choices=("no", "epoch", "steps"), default="no")
    parser.add_argument("--evaluation_strategy", choices=("no",), default="no")
    parser.add_argument("--logging_strategy", choices=("epoch", "steps"), default="epoch")
    parser.add_argument("--logging_steps", type=int, default=500)
    parser.add_argument("--output_dir", default="/opt/ml/model")
    parser.add_argument("--overwrite_output_dir", type=boolean, default=True)


def boolean(text: str) -> bool:
    if text not in ("True", "False"):
        raise argparse.ArgumentTypeError("{!r}: expected True or False".format(text))
    return text == "True"
