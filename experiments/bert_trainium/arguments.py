"""The hyperparameters of the BERT experiment on Trainium and GPUs, as the training toolkit passes
them.
"""

import argparse
import os
from typing import List, Optional


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Fine-tune BERT to tell good reviews from bad ones."
    )
    parser.add_argument(
        "--model_name_or_path", default="bert-base-uncased", help="Hub id or folder"
    )
    parser.add_argument(
        "--train_folder", default=os.environ.get("SM_CHANNEL_TRAIN"), help="holds train.csv"
    )
    parser.add_argument(
        "--validation_folder", default=os.environ.get("SM_CHANNEL_VAL"), help="holds test.csv"
    )
    parser.add_argument("--max_length", type=int, default=128, help="tokens in one sample")
    parser.add_argument("--per_device_train_batch_size", type=int, default=8)
    parser.add_argument("--per_device_eval_batch_size", type=int, default=8)
    parser.add_argument("--learning_rate", type=float, default=5e-5)
    parser.add_argument("--num_train_epochs", type=int, default=1)
    parser.add_argument(
        "--max_train_steps", type=int, default=2000, help="ends earlier than the epochs"
    )
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--output_dir", default=os.environ.get("SM_MODEL_DIR", "/opt/ml/model"))
    return parser.parse_args(arguments)
