"""Evaluates the model on sequences that it was not trained on, by a schedule."""

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch

from traindyno.callbacks import StepLogger
from traindyno.core.run.record import RunMeasurement
from traindyno.core.suite.choices import Task
from training.data.batch import Array, Batch, Mask
from training.data.collate import Collate
from training.data.sequences import Sequences
from training.models.objective import IGNORED_LABEL
from training.process.process_group import sum_over_ranks
from training.strategies import Setup, TrainingStrategy


def evaluate(
    strategy: TrainingStrategy, setup: Setup, sequences: Sequences, collate: Collate
) -> dict[str, float]:
    """Scores each sequence once.

    Every rank makes the same number of calls, the last on rows that may not count.
    """
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
    """Yields this rank's batches: the numbers of their samples [B], and which of them count [B]."""
    batch_size = setup.settings.batch_size
    whole = batch_size * strategy.data_world_size
    for begin in range(0, count, whole):
        numbers = begin + strategy.data_rank * batch_size + np.arange(batch_size)
        yield np.minimum(numbers, count - 1), numbers < count


def _only(batch: Batch, counted: Mask) -> Batch:
    """The batch with labels in the ``counted`` [B] rows only."""
    if counted.all():
        return batch
    labels = batch["labels"].clone()
    labels[torch.from_numpy(~counted)] = IGNORED_LABEL
    return {**batch, "labels": labels}


class EvaluationSchedule:
    """Evaluates on ``held_out`` after every so many steps, and after the last one.

    All ranks take the same steps, so they evaluate at the same steps without communication.

    ``observe`` gets the metrics of each evaluation.
    """

    def __init__(
        self,
        measurement: RunMeasurement,
        held_out: Sequences | None,
        evaluate: Callable[[Sequences], Mapping[str, float]],
        observe: Callable[[Mapping[str, float]], None],
        step_log: StepLogger,
    ) -> None:
        self._measurement = measurement
        self._held_out = held_out
        self._evaluate = evaluate
        self._observe = observe
        self._step_log = step_log
        self._steps = 0
        self._evaluated_at: int | None = None

    def after_step(self) -> None:
        self._steps = max(
            self._steps + 1, self._step_log.steps
        )  # a resumed run has done some before
        every = self._measurement.evaluate_every_steps
        if every is not None and self._steps % every == 0:
            self._evaluate_now()

    def at_end(self, *, are_rounded: bool) -> None:
        """Evaluates the model once more, unless its last evaluation is still true.

        It is not if the weights ``are_rounded``, that is, if they have changed since the last step.
        """
        is_known = self._evaluated_at == self._steps and not are_rounded
        if self._measurement.evaluates and not is_known:
            self._evaluate_now()

    def _evaluate_now(self) -> None:
        assert self._held_out is not None
        with self._step_log.phase("evaluate", {"examples": len(self._held_out)}):
            metrics = self._evaluate(self._held_out)
        self._step_log.evaluation(dict(metrics))
        self._evaluated_at = self._steps
        self._observe(metrics)
