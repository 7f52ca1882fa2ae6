"""Loss, accuracy and perplexity of the model on sequences that it was not trained on."""

import math
from collections.abc import Iterator

import numpy as np
import torch

from traindyno.core.suite.choices import Task
from training.data.arrays import Array, Mask
from training.data.batch import Batch
from training.data.collate import Collate
from training.data.masking import IGNORED
from training.data.sequences import Sequences
from training.process.process_group import sum_over_ranks
from training.strategies import Setup, TrainingStrategy


def evaluate(strategy: TrainingStrategy, setup: Setup, sequences: Sequences, collate: Collate) -> dict[str, float]:
    """All sequences once; every rank makes the same number of calls, the last on rows that may not count."""
    total = torch.zeros(3, dtype=torch.float64)
    strategy.set_training(False)
    with torch.no_grad():
        for samples, counted in _shares(len(sequences), setup, strategy):
            batch = collate(sequences, samples, samples)
            batch.pop("weight", None)
            score = strategy.score(setup.accelerator.to_device(_only(batch, counted)))
            if score is not None:
                total += score.double().cpu()
    strategy.set_training(True)
    loss_sum, right, labels = sum_over_ranks(total).tolist()
    metrics = {"loss": loss_sum / labels, "accuracy": right / labels}
    if setup.task is not Task.SEQUENCE_CLASSIFICATION:
        metrics["perplexity"] = math.exp(min(metrics["loss"], 700.0))
    return metrics


def _shares(count: int, setup: Setup, strategy: TrainingStrategy) -> Iterator[tuple[Array, Mask]]:
    batch_size = setup.settings.batch_size_per_device
    whole = batch_size * strategy.data_world_size
    for begin in range(0, count, whole):
        numbers = begin + strategy.data_rank * batch_size + np.arange(batch_size)
        yield np.minimum(numbers, count - 1), numbers < count


def _only(batch: Batch, counted: Mask) -> Batch:
    """The rows that count; the labels of the others are ignored."""
    if counted.all():
        return batch
    labels = batch["labels"].clone()
    labels[torch.from_numpy(~counted)] = IGNORED
    return {**batch, "labels": labels}
