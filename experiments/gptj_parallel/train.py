"""Fine-tunes GPT-J with SageMaker's model parallel library v1: tensor, pipeline and sharded data
parallelism.

For torch 1.10 to 1.13, the library's 1.10 to 1.15 and transformers 4.17 to 4.26 on Python 3.8.
mpirun starts one process per GPU; the library divides them into tensor, pipeline and data parallel
groups.
"""

import contextlib
import itertools
import os
from argparse import Namespace
from pathlib import Path
from typing import Any, Iterator

import smdistributed.modelparallel.torch as smp
import torch
from arguments import library_settings, parse_arguments
from learning_rate import linear_rate
from parallel_model import FULL_MODEL, ParallelModel, build_model
from text_blocks import in_blocks, load_text
from torch.utils.data import DataLoader, DistributedSampler
from transformers import AutoTokenizer, default_data_collator, set_seed
from weights import weights_folder

from traindyno.callbacks import step_log


@smp.step
def train_step(model: Any, input_ids: Any, labels: Any) -> Any:
    """One microbatch, forward and backward: the library calls it for each and in the pipeline's
    order.
    """
    loss = model(input_ids=input_ids, labels=labels)["loss"]
    model.backward(loss)
    return loss


@smp.step
def test_step(model: Any, input_ids: Any, labels: Any) -> Any:
    return model(input_ids=input_ids, labels=labels)["loss"]


def main() -> None:
    arguments = parse_arguments()
    smp.init(library_settings(arguments))
    set_seed(arguments.seed)
    if torch.cuda.is_available():
        torch.cuda.set_device(smp.local_rank())
    with step_log.phase("load"):
        weights = weights_folder(arguments)
        tokenizer = AutoTokenizer.from_pretrained(weights, cache_dir=arguments.cache_dir)
        loader = data_loader(arguments, tokenizer, "train", arguments.train_batch_size)
        built = build_model(arguments, weights)
    step_log.model(built.parameters)
    train(built, loader, tokenizer, arguments)
    if arguments.save_final_full_model:
        with step_log.phase("save"):
            optimizer = None if arguments.skip_full_optimizer else built.optimizer
            save(arguments, FULL_MODEL, partial=False, model=built.model, optimizer=optimizer)
    smp.barrier()


def data_loader(arguments: Namespace, tokenizer: Any, channel: str, batch_size: int) -> Any:
    """The batches of the channel's files, or of the named dataset's training split."""
    files = os.environ.get("SM_CHANNEL_{}".format(channel.upper()))
    text = load_text(arguments.dataset_name, arguments.dataset_config_name, files)
    blocks = in_blocks(text, tokenizer, arguments.max_context_width)
    # With a prescaled batch, the processes of a tensor parallel group read the same samples.
    rank, count = (
        (smp.rdp_rank(), smp.rdp_size())
        if arguments.prescaled_batch
        else (smp.dp_rank(), smp.dp_size())
    )
    sampler: Any = DistributedSampler(blocks, num_replicas=count, rank=rank, seed=arguments.seed)
    return DataLoader(
        blocks,
        batch_size=batch_size,
        sampler=sampler,
        drop_last=True,
        collate_fn=default_data_collator,
    )


def train(built: ParallelModel, loader: Any, tokenizer: Any, arguments: Namespace) -> None:
    built.model.train()
    share = samples_counted_here(arguments)
    traced = step_log.phase(
        "trace"
    )  # the library traces and partitions the model in the first call
    for number, batch in enumerate(itertools.islice(epochs(loader), arguments.max_steps), start=1):
        rate = linear_rate(number - 1, arguments)
        for group in built.optimizer.param_groups:
            group["lr"] = rate
        with step_log.step(
            samples=share, tokens=share * arguments.max_context_width, learning_rate=rate
        ) as step:
            inputs = {name: values.to(built.device) for name, values in batch.items()}
            built.optimizer.zero_grad()
            with traced if number == 1 else contextlib.nullcontext():
                losses = train_step(built.model, inputs["input_ids"], inputs["labels"])
            built.optimizer.step()
            step.loss = losses.reduce_mean()
        if number % arguments.logging_freq == 0 and smp.rank() == 0:
            print("step {}: loss {:.4f}".format(number, float(step.loss)))  # noqa: T201
        if number % arguments.validation_freq == 0 and "SM_CHANNEL_TEST" in os.environ:
            evaluate(built, data_loader(arguments, tokenizer, "test", arguments.val_batch_size))
        if number % arguments.checkpoint_freq == 0:
            with step_log.phase("save"):
                tag = "step{}".format(number)
                save(arguments, tag, partial=True, model=built.model, optimizer=built.optimizer)


def evaluate(built: ParallelModel, loader: Any) -> None:
    """The mean loss over this process's part of the test channel."""
    built.model.eval()
    losses = []
    with step_log.phase("evaluate"), torch.no_grad():
        for batch in loader:
            inputs = {name: values.to(built.device) for name, values in batch.items()}
            losses.append(
                float(test_step(built.model, inputs["input_ids"], inputs["labels"]).reduce_mean())
            )
    step_log.evaluation({"loss": sum(losses) / len(losses)})
    built.model.train()


def samples_counted_here(arguments: Namespace) -> int:
    """The samples that this process counts of its batch.

    The first of the processes that share a batch counts it, so that the sum over all processes is
    the work done.
    """
    shares_batch = smp.pp_rank() > 0 or (arguments.prescaled_batch and smp.tp_rank() > 0)
    return 0 if shares_batch else int(arguments.train_batch_size)


def epochs(loader: Any) -> Iterator[Any]:
    for epoch in itertools.count():
        loader.sampler.set_epoch(epoch)
        yield from loader


def save(arguments: Namespace, tag: str, *, partial: bool, model: Any, optimizer: Any) -> None:
    kept = {"num_kept_partial_checkpoints": arguments.num_kept_checkpoints} if partial else {}
    folder = str(Path(arguments.output_dir) / "checkpoints") if partial else arguments.output_dir
    smp.save_checkpoint(folder, tag=tag, partial=partial, model=model, optimizer=optimizer, **kept)


if __name__ == "__main__":
    main()
