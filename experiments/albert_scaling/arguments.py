"""The hyperparameters of the ALBERT experiment, as the training toolkit passes them."""

import argparse
import os
from typing import List, Optional


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Train ALBERT's masked language modelling on text."
    )
    parser.add_argument("--model_type", default="albert", help="trained from random weights")
    parser.add_argument(
        "--config_name", help="Hub id or folder of the configuration, such as albert-base-v2"
    )
    parser.add_argument(
        "--config_overrides", default="", help="hidden_size=64,num_hidden_layers=2: a smaller model"
    )
    parser.add_argument("--tokenizer_name", help="Hub id or folder; config_name by default")
    parser.add_argument(
        "--train_folder",
        default=os.environ.get("SM_CHANNEL_TRAIN"),
        help="text, one passage a line",
    )
    parser.add_argument(
        "--stream_from", help="s3://bucket/prefix, read by the script instead of the channel"
    )
    parser.add_argument("--max_seq_length", type=int, default=512)
    parser.add_argument("--mlm_probability", type=float, default=0.15)
    parser.add_argument("--do_train", type=boolean, default=True)
    parser.add_argument("--max_steps", type=int, required=True)
    parser.add_argument("--per_device_train_batch_size", type=int, default=16)
    parser.add_argument("--dataloader_num_workers", type=int, default=0)
    parser.add_argument("--learning_rate", type=float, default=1e-4)
    parser.add_argument("--fp16", type=boolean, default=False)
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--output_dir", default="/opt/ml/model")
    return parser.parse_args(arguments)


def boolean(text: str) -> bool:
    if text not in ("True", "False"):
        raise argparse.ArgumentTypeError("{!r}: expected True or False".format(text))
    return text == "True"
