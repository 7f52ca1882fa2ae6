"""Trains ALBERT's masked language modelling under PyTorch's DDP or SageMaker's data parallel
library.

For torch 1.11 to 1.13 and transformers 4.21 on Python 3.8. The global batch is the batch per device
times the number of processes, and ``max_steps`` gives every number of nodes the same number of
examples, as in the post.
"""

import itertools
import json
import os
from argparse import Namespace
from typing import Any, Tuple

import torch
from arguments import parse_arguments
from masked_passages import Passages, masked_loader
from text_lines import FolderLines, S3Lines
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer

from traindyno.callbacks import step_log

DATA_PARALLEL_FLAG = "sagemaker_distributed_dataparallel_enabled"


def main() -> None:
    arguments = parse_arguments()
    device = start_process_group()
    torch.manual_seed(arguments.seed)
    with step_log.phase("load"):
        tokenizer = AutoTokenizer.from_pretrained(arguments.tokenizer_name or arguments.config_name)
        model = distributed_model(new_model(arguments, len(tokenizer)), device)
        lines = (
            S3Lines(arguments.stream_from)
            if arguments.stream_from
            else FolderLines(arguments.train_folder)
        )
        length = arguments.max_seq_length
        rank = distributed.get_rank()
        world_size = distributed.get_world_size()
        passages = Passages(lines, tokenizer, length, rank, world_size)
        loader = masked_loader(
            passages,
            batch_size=arguments.per_device_train_batch_size,
            workers=arguments.dataloader_num_workers,
            mask_probability=arguments.mlm_probability,
        )
    torch.manual_seed(arguments.seed + distributed.get_rank())  # different masks in every process
    train(model, loader, device, arguments)
    if distributed.get_rank() == 0:
        with step_log.phase("save"):
            model.module.save_pretrained(arguments.output_dir)
            tokenizer.save_pretrained(arguments.output_dir)


def start_process_group() -> torch.device:
    """The device of this process, in a group over SMDDP where the job asks for it, else over NCCL
    or Gloo.
    """
    if not torch.cuda.is_available():
        distributed.init_process_group(backend="gloo")
        return torch.device("cpu")
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    if json.loads(os.environ.get("SM_FRAMEWORK_PARAMS", "{}")).get(DATA_PARALLEL_FLAG):
        # Registers the backend; part of the frozen images only.
        import smdistributed.dataparallel.torch.torch_smddp  # noqa: F401, PLC0415

        distributed.init_process_group(backend="smddp")
    else:
        distributed.init_process_group(backend="nccl")
    return torch.device("cuda", torch.cuda.current_device())


def new_model(arguments: Namespace, vocabulary_size: int) -> Any:
    if arguments.config_name:
        configuration = AutoConfig.from_pretrained(arguments.config_name)
    else:
        configuration = AutoConfig.for_model(arguments.model_type)
    if arguments.config_overrides:
        configuration.update_from_string(arguments.config_overrides)
    model = AutoModelForMaskedLM.from_config(configuration)
    model.resize_token_embeddings(vocabulary_size)
    return model


def distributed_model(model: Any, device: torch.device) -> DistributedDataParallel:
    step_log.model(sum(parameter.numel() for parameter in model.parameters()))
    device_ids = [device.index] if device.type == "cuda" else None
    return DistributedDataParallel(model.to(device), device_ids=device_ids)


def train(
    model: DistributedDataParallel, loader: Any, device: torch.device, arguments: Namespace
) -> None:
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate)
    scaler = torch.cuda.amp.GradScaler(enabled=arguments.fp16)
    for batch in itertools.islice(loader, arguments.max_steps):
        samples, tokens = size_of(batch)
        with step_log.step(
            samples=samples, tokens=tokens, learning_rate=arguments.learning_rate
        ) as step:
            inputs = {name: values.to(device, non_blocking=True) for name, values in batch.items()}
            with torch.cuda.amp.autocast(enabled=arguments.fp16):
                loss = model(**inputs).loss
            optimizer.zero_grad(set_to_none=True)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            step.loss = loss


def size_of(batch: Any) -> Tuple[int, int]:
    """Samples and tokens of a batch; every sample is full."""
    samples, length = batch["input_ids"].shape
    return samples, samples * length


if __name__ == "__main__":
    main()
