"""Trains with Hugging Face's Trainer: on the same batches as our trainer, or with its defaults."""

import itertools
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

import torch
from datasets import Dataset
from transformers import (
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    PreTrainedModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    default_data_collator,
)

from bench.plain_model import Weights, initial_weights, plain_model
from bench.trained import Trained
from traindyno.callbacks.clock import HostClock, clock_for_this_process
from traindyno.callbacks.environment import peak_memory_bytes
from traindyno.core.suite.choices import Compiler, Precision, Task
from training.data.batch import Batch, token_count
from training.data.dataset import TokenDataset
from training.process.run_settings import RunSettings

Collator = Callable[[list[dict[str, Any]]], dict[str, Any]]


class Marks(TrainerCallback):
    """Points in time on the device's stream: the beginning, and the end of each step."""

    def __init__(self) -> None:
        self.clock = HostClock()
        self.marks: list[Any] = []

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.clock = clock_for_this_process()
        self.marks.append(self.clock.mark())

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.marks.append(self.clock.mark())

    def step_seconds(self) -> tuple[float, ...]:
        return tuple(
            end - begin for begin, end in itertools.pairwise(self.clock.resolve(self.marks))
        )


class Counted:
    """A collator that also counts each batch's tokens, which have no padding yet."""

    def __init__(self, collate: Collator) -> None:
        self._collate = collate
        self.tokens: list[int] = []

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        self.tokens.append(sum(len(feature["input_ids"]) for feature in features))
        return self._collate(features)


class KeepingLosses(Trainer):
    """Keeps losses for a comparison. A race does not use it: waiting for each loss costs time."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.losses: list[float] = []

    def training_step(self, *arguments: Any, **options: Any) -> torch.Tensor:
        loss: torch.Tensor = super().training_step(*arguments, **options)
        self.losses.append(float(loss))
        return loss


class SameWork:
    """Our batches as rows of a dataset, collated already, and our options."""

    def __init__(
        self,
        run: RunSettings,
        dataset: TokenDataset,
        steps: Sequence[list[Batch]],
        weights: Weights,
    ) -> None:
        self._run = run
        self._tokenizer = dataset.tokenizer
        self._weights = weights
        names = [name for name in steps[0][0] if name != "weight"]
        columns = {
            name: torch.cat([batch[name] for step in steps for batch in step]).numpy()
            for name in names
        }
        self._rows = Dataset.from_dict(columns).with_format("torch")
        self._tokens = tuple(sum(map(token_count, step)) for step in steps)

    def train(self) -> Trained:
        marks = Marks()
        self._train(Trainer, [marks])
        return Trained(
            step_seconds=marks.step_seconds(),
            tokens=self._tokens,
            peak_memory_bytes=peak_memory_bytes(),
        )

    def losses(self) -> tuple[float, ...]:
        trainer = self._train(KeepingLosses, [])
        assert isinstance(trainer, KeepingLosses)
        return tuple(trainer.losses)

    def _train(self, kind: type[Trainer], callbacks: Sequence[TrainerCallback]) -> Trainer:
        settings = self._run.settings
        return _run_trainer(
            kind,
            self._run,
            plain_model(self._run, self._tokenizer, self._weights),
            rows=self._rows,
            collate=default_data_collator,
            callbacks=callbacks,
            bf16=settings.precision is Precision.BF16,
            torch_compile=settings.compiler is Compiler.INDUCTOR,
            activation_checkpointing=settings.activation_checkpointing,
            weight_decay=settings.weight_decay,
            max_grad_norm=settings.gradient_clip_norm or 0.0,
            learning_rate=settings.learning_rate.base,
            lr_scheduler_type=settings.lr_schedule.replace("constant", "constant_with_warmup"),
            warmup_steps=settings.lr_warmup_steps,
            train_sampling_strategy="sequential",
        )


class TrainerDefaults:
    """Single precision, no compiler, batches in random order, each padded to its longest
    sequence.
    """

    def __init__(self, run: RunSettings, dataset: TokenDataset) -> None:
        sequences = dataset.train
        tokenizer = dataset.tokenizer
        assert sequences is not None
        assert tokenizer is not None
        self._run = run
        self._tokenizer = tokenizer
        tokens = [
            sequences.tokens[begin : begin + length].tolist()
            for begin, length in zip(sequences.begins, sequences.lengths, strict=True)
        ]
        columns: dict[str, Any] = {"input_ids": tokens}
        if sequences.labels is not None:
            columns["labels"] = sequences.labels.tolist()
        self._rows = Dataset.from_dict(columns)

    def train(self) -> Trained:
        marks = Marks()
        collate = Counted(self._collator())
        model = plain_model(self._run, self._tokenizer, initial_weights(self._run, self._tokenizer))
        _run_trainer(Trainer, self._run, model, rows=self._rows, collate=collate, callbacks=[marks])
        seconds = marks.step_seconds()
        tokens = tuple(collate.tokens[: len(seconds)])
        return Trained(step_seconds=seconds, tokens=tokens, peak_memory_bytes=peak_memory_bytes())

    def count_tokens(self, rows: int) -> int:
        collate = Counted(self._collator())
        collate([self._rows[number] for number in range(rows)])
        return sum(collate.tokens)

    def _collator(self) -> Collator:
        task = self._run.workload.task
        if task is Task.SEQUENCE_CLASSIFICATION:
            return DataCollatorWithPadding(self._tokenizer)
        return DataCollatorForLanguageModeling(self._tokenizer, mlm=task is Task.MASKED_LM)


def _run_trainer(
    kind: type[Trainer],
    run: RunSettings,
    model: PreTrainedModel,
    *,
    rows: Dataset,
    collate: Collator,
    callbacks: Sequence[TrainerCallback],
    **options: Any,
) -> Trainer:
    on_cpu = not torch.cuda.is_available()
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=run.settings.batch_size,
            max_steps=run.measurement.max_steps,
            use_cpu=on_cpu,
            dataloader_pin_memory=not on_cpu,
            seed=run.settings.seed,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            **options,
        )
        trainer = kind(
            model=model,
            args=arguments,
            train_dataset=rows,
            data_collator=collate,
            callbacks=list(callbacks),
        )
        trainer.train()
    return trainer
