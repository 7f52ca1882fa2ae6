"""The hyperparameters of the GPT-J notebooks, tensor and pipeline parallel, as the training toolkit
passes them.

Some names differ between the notebooks: ``train_batch_size`` and ``per_device_train_batch_size``
are one argument.
"""

import argparse
import json
from typing import Any, Dict, List, Optional


def parse_arguments(arguments: Optional[List[str]] = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description="Fine-tune GPT-J with the model parallel library v1."
    )
    _add_model_arguments(parser)
    _add_parallel_arguments(parser)
    _add_data_arguments(parser)
    _add_optimizer_arguments(parser)
    _add_run_arguments(parser)
    return parser.parse_args(arguments)


def library_settings(arguments: argparse.Namespace) -> Dict[str, Any]:
    """The model parallel library's configuration; the launcher's ``mp_parameters`` replace the
    script's arguments.
    """
    settings = {
        "ddp": arguments.ddp,
        "tensor_parallel_degree": arguments.tensor_parallel_degree,
        "pipeline_parallel_degree": arguments.pipeline_parallel_degree,
        "microbatches": arguments.microbatches,
        "prescaled_batch": arguments.prescaled_batch,
        "shard_optimizer_state": arguments.shard_optimizer_state,
        "optimize": arguments.optimize,
        "fp16": arguments.fp16,
        "auto_partition": not arguments.manual_partition,
        "default_partition": 0,
        "pipeline": arguments.pipeline,
        "offload_activations": arguments.offload_activations,
        "activation_loading_horizon": arguments.activation_loading_horizon,
    }  # type: Dict[str, Any]
    if arguments.sharded_data_parallel_degree > 1:
        settings["sharded_data_parallel_degree"] = arguments.sharded_data_parallel_degree
    launched = dict(arguments.mp_parameters)
    if "partitions" in launched:  # the older name of the same setting
        launched["pipeline_parallel_degree"] = launched.pop("partitions")
    return dict(settings, **launched)


def _add_model_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--model_name_or_path", default="EleutherAI/gpt-j-6B", help="Hub id, folder or s3://"
    )
    parser.add_argument(
        "--load_from_s3", type=boolean, default=False, help="the weights are in the channel model"
    )
    parser.add_argument(
        "--finetune_6b", type=boolean, default=True, help="False trains from random weights"
    )
    parser.add_argument(
        "--config_overrides",
        default="",
        help="n_embd=64,n_layer=2: a smaller model, random weights",
    )
    parser.add_argument("--cache_dir", help="where the Hub's files are stored")
    parser.add_argument("--max_context_width", type=int, default=512, help="tokens in one sample")


def _add_parallel_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--mp_parameters", type=assignments, default={}, help="ddp=True,partitions=8"
    )
    parser.add_argument("--ddp", type=boolean, default=True)
    parser.add_argument("--tensor_parallel_degree", type=int, default=1)
    parser.add_argument("--pipeline_parallel_degree", type=int, default=1)
    parser.add_argument("--sharded_data_parallel_degree", type=int, default=1)
    parser.add_argument("--pipeline", choices=("simple", "interleaved"), default="interleaved")
    parser.add_argument("--microbatches", type=int, default=1)
    parser.add_argument(
        "--manual_partition", type=boolean, default=False, help="False: the library partitions"
    )
    parser.add_argument("--prescaled_batch", type=boolean, default=False)
    parser.add_argument("--shard_optimizer_state", type=boolean, default=False)
    parser.add_argument("--activation_checkpointing", type=boolean, default=False)
    parser.add_argument(
        "--activation_strategy", default="each", help="each, or group_2 for two layers at a time"
    )
    parser.add_argument("--offload_activations", type=boolean, default=False)
    parser.add_argument("--activation_loading_horizon", type=int, default=4)
    parser.add_argument("--optimize", choices=("memory", "speed"), default="memory")
    parser.add_argument("--fp16", type=boolean, default=False)


def _add_data_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset_name", help="on the Hub; without it the train channel's files")
    parser.add_argument("--dataset_config_name")
    batch_size = ("--train_batch_size", "--per_device_train_batch_size")
    parser.add_argument(*batch_size, dest="train_batch_size", type=int, default=2)
    parser.add_argument("--val_batch_size", type=int, default=2)


def _add_optimizer_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--min_lr", type=float, default=1e-5)
    parser.add_argument("--lr_decay_iters", type=int, default=125000)
    parser.add_argument("--lr-decay-style", choices=("linear",), default="linear")
    parser.add_argument("--warmup", type=float, default=0.01, help="share of lr_decay_iters")


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--do_train", type=boolean, choices=(True,), default=True)
    parser.add_argument(
        "--do_eval", type=boolean, choices=(False,), default=False, help="see validation_freq"
    )
    parser.add_argument("--max_steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=12345)
    parser.add_argument(
        "--logging_freq", type=int, default=10, help="steps between two losses in the job's log"
    )
    parser.add_argument(
        "--validation_freq",
        type=int,
        default=1000,
        help="steps between two evaluations on the channel test",
    )
    parser.add_argument(
        "--checkpoint_freq", type=int, default=200, help="steps between two checkpoints"
    )
    parser.add_argument("--num_kept_checkpoints", type=int, default=5)
    parser.add_argument(
        "--skip_full_optimizer",
        type=boolean,
        default=True,
        help="the last checkpoint holds weights",
    )
    parser.add_argument("--save_final_full_model", type=boolean, default=True)
    parser.add_argument("--output_dir", default="/opt/ml/model")


def boolean(text: str) -> bool:
    """The notebooks write 1 in some places and true in others."""
    if text not in ("True", "False", "1", "0"):
        raise argparse.ArgumentTypeError("{!r}: expected True, False, 1 or 0".format(text))
    return text in ("True", "1")


def assignments(text: str) -> Dict[str, Any]:
    """Reads assignments, or the same as JSON.

    In ``ddp=True,microbatches=2,optimize=speed``, booleans and whole numbers are read as such.
    """
    if text.startswith("{"):
        return dict(json.loads(text))
    return {
        name: _value(value)
        for name, value in (pair.split("=", 1) for pair in text.split(",") if pair)
    }


def _value(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.lstrip("-").isdigit() else text
