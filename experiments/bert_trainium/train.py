"""Fine-tunes BERT on reviews, on Trainium by PyTorch/XLA or on GPUs and CPUs by DDP, and measures
its accuracy.

For torch 1.11 to 1.13, torch-xla 1.11 to 1.13 and transformers 4.21 on Python 3.8. torchrun starts
one process per NeuronCore or GPU.
"""

import itertools
from argparse import Namespace
from pathlib import Path
from typing import Any, Dict

import torch
from arguments import parse_arguments
from devices import Device, device_of_this_process
from reviews import Batch, read_reviews, review_loader
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from traindyno.callbacks import step_log


def main() -> None:
    arguments = parse_arguments()
    device = device_of_this_process()
    torch.manual_seed(arguments.seed)
    with step_log.phase("load"):
        tokenizer = AutoTokenizer.from_pretrained(arguments.model_name_or_path)
        model = AutoModelForSequenceClassification.from_pretrained(
            arguments.model_name_or_path, num_labels=2
        )
        step_log.model(sum(parameter.numel() for parameter in model.parameters()))
        wrapped = device.wrap(model)
    train(wrapped, tokenizer, device, arguments)
    accuracy = evaluate(wrapped, tokenizer, device, arguments)
    if device.rank == 0:
        print("validation accuracy: {:.4f}".format(accuracy))  # noqa: T201
    with step_log.phase("save"):
        device.save(model, arguments.output_dir)
        if device.rank == 0:
            tokenizer.save_pretrained(arguments.output_dir)


def train(model: Any, tokenizer: Any, device: Device, arguments: Namespace) -> None:
    """Takes at most ``max_train_steps`` steps, in at most ``num_train_epochs`` epochs."""
    batch_size = arguments.per_device_train_batch_size
    most = arguments.max_train_steps * batch_size * device.world_size
    reviews = read_reviews(
        Path(arguments.train_folder) / "train.csv", device.rank, device.world_size, most
    )
    whole = (
        len(reviews) // batch_size * batch_size
    )  # a short batch would be another graph to compile
    loader = device.loader(
        review_loader(reviews[:whole], tokenizer, batch_size, arguments.max_length, shuffles=True)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=arguments.learning_rate)
    model.train()
    batches = itertools.chain.from_iterable(itertools.repeat(loader, arguments.num_train_epochs))
    for number, batch in enumerate(itertools.islice(batches, arguments.max_train_steps)):
        with step_log.step(
            samples=len(batch["labels"]), learning_rate=arguments.learning_rate
        ) as step:
            loss = train_on(batch, model, optimizer, device)
            if device.reads_loss_after(number):
                step.loss = loss


def train_on(batch: Batch, model: Any, optimizer: Any, device: Device) -> Any:
    optimizer.zero_grad()
    loss = model(**batch).loss
    loss.backward()
    device.step(optimizer)
    return loss.detach()


def evaluate(model: Any, tokenizer: Any, device: Device, arguments: Namespace) -> float:
    """Share of right answers over the reviews of all processes."""
    reviews = read_reviews(
        Path(arguments.validation_folder) / "test.csv", device.rank, device.world_size
    )
    batch_size = arguments.per_device_eval_batch_size
    loader = device.loader(
        review_loader(reviews, tokenizer, batch_size, arguments.max_length, shuffles=False)
    )
    counts = {"right": 0.0, "all": 0.0, "loss": 0.0}
    model.eval()
    with step_log.phase("evaluate"), torch.no_grad():
        for batch in loader:
            count(batch, model, counts)
        totals = device.totals(counts)
    accuracy = float(totals["right"] / totals["all"])
    step_log.evaluation({"accuracy": accuracy, "loss": totals["loss"] / totals["all"]})
    return accuracy


def count(batch: Batch, model: Any, counts: Dict[str, float]) -> None:
    output = model(**batch)
    samples = len(batch["labels"])
    counts["right"] += float((output.logits.argmax(dim=-1) == batch["labels"]).sum())
    counts["loss"] += float(output.loss) * samples
    counts["all"] += samples


if __name__ == "__main__":
    main()
