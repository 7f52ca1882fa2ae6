"""The samples of a step log are the rows that a script trained on, as the script itself counts them
where it trains.
"""

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lightning as L
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset
from transformers import DataCollatorWithFlattening, Trainer, TrainingArguments

from tests.training.forked_jobs import run_forked
from traindyno.callbacks import hf_trainer
from traindyno.callbacks import lightning as lightning_callback
from traindyno.callbacks.environment import weights_of
from traindyno.callbacks.log import StepLogger
from traindyno.core.measurement.measured_run import read_environment
from traindyno.core.step_log.content import ProcessLog, StepLog
from traindyno.core.step_log.line import BATCH_SEARCH, PAUSE, WORK_UNIT
from traindyno.core.step_log.reader import read_step_log

BLOCKS = "packed blocks of 64 tokens"
FIRST_TOKEN = 1  # of each row, and of nothing else
Seen = list[tuple[int, int]]  # step and rows of each batch
Row = dict[str, torch.Tensor]
SHARED = """
import json, sys, time, torch
from pathlib import Path
from torch.utils.data import IterableDataset
from transformers import Trainer, TrainingArguments
from traindyno.callbacks.hf_trainer import StepLogCallback

rows, options, seen = [{"x": torch.ones(4)}] * 22, eval(sys.argv[1]), []

class Stream(IterableDataset):
    def __iter__(self):
        return iter(rows)

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels=None):
        return {"loss": self.layer(x).square().mean()}

class Counting(Trainer):
    def compute_loss(self, model, inputs, *arguments, **others):
        seen.append(len(inputs["x"]))
        return super().compute_loss(model, inputs, *arguments, **others)

given = dict(output_dir="out", save_strategy="no", report_to=[], use_cpu=True, max_steps=7)
given["disable_tqdm"] = True
data = Stream() if sys.argv[2] == "stream" else rows
arguments = TrainingArguments(**given, **options)
Counting(Model(), arguments, train_dataset=data, callbacks=[StepLogCallback()]).train()
Path(f"rows_{torch.distributed.get_rank()}.json").write_text(json.dumps(seen))
time.sleep(0.3)
torch.distributed.destroy_process_group()
"""


@pytest.fixture
def step_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StepLogger]:
    """The step log of a process of its own, in this one."""
    log = StepLogger(str(tmp_path / "log"))
    monkeypatch.setattr(hf_trainer, "step_log", log)
    monkeypatch.setattr(lightning_callback, "step_log", log)
    yield log
    log.close()


def read(log: StepLogger) -> StepLog:
    log.close()
    return read_step_log(
        {path.name: path.read_text().splitlines() for path in Path(log._directory).glob("*/*")}
    )


def process_of(log: StepLogger) -> ProcessLog:
    (session,) = read(log).sessions
    (process,) = session.processes
    return process


def texts(count: int) -> list[Row]:
    lengths = random.Random(count)
    return [
        {"input_ids": torch.tensor([FIRST_TOKEN, *[2] * lengths.randint(1, 9)])}
        for _ in range(count)
    ]


class Stream(IterableDataset[Row]):
    def __init__(self, count: int) -> None:
        self.rows = texts(count)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


def pad(rows: Any) -> dict[str, torch.Tensor]:
    return {
        "input_ids": nn.utils.rnn.pad_sequence([row["input_ids"] for row in rows], batch_first=True)
    }


def drop_short(rows: Any) -> dict[str, torch.Tensor]:
    return pad([row for row in rows if len(row["input_ids"]) > 3] or rows[:1])


def keep_first(rows: Any) -> dict[str, torch.Tensor]:
    """Keep the first of two neighbours."""
    return pad(rows[::2])


def budgets(rows: Sequence[Row], budget: int = 24) -> list[list[int]]:
    """Batches of at most ``budget`` tokens with their padding, as a batch sampler for translation
    makes them.
    """
    lengths = [len(row["input_ids"]) for row in rows]
    batches: list[list[int]] = [[]]
    for index in sorted(range(len(rows)), key=lambda place: lengths[place]):
        if (len(batches[-1]) + 1) * lengths[index] > budget:
            batches.append([])
        batches[-1].append(index)
    return batches


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Embedding(4, 2)

    def forward(
        self, input_ids: torch.Tensor, labels: Any = None, position_ids: Any = None
    ) -> dict[str, torch.Tensor]:
        return {"loss": self.layer(input_ids).square().mean()}


class CountingTrainer(Trainer):
    """Notes the rows of each forward pass that it trains on, and fails as a device does that holds
    ``most`` rows.
    """

    def __init__(self, *arguments: Any, seen: Seen, most: int = 1000, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._seen = seen
        self._most = most

    def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **options: Any) -> Any:
        rows = int((inputs["input_ids"] == FIRST_TOKEN).sum())
        if rows > self._most and self.state.global_step >= self._seen_before_failure:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
        if model.training:
            self._seen.append((self.state.global_step, rows))
        return super().compute_loss(model, inputs, *arguments, **options)

    _seen_before_failure = 2


class OwnLoaderTrainer(CountingTrainer):
    def get_train_dataloader(self) -> Any:
        rows: Any = self.train_dataset
        return DataLoader(rows, batch_sampler=budgets(rows), collate_fn=pad)


def test_a_model_with_frozen_parameters_says_how_many_train() -> None:
    """As an adapter beside its base: 4 × 3 + 3 parameters are frozen, 3 × 2 + 2 train."""
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2))
    assert weights_of(model) == {"parameters": 23, "trained": None}
    model[0].requires_grad_(False)
    assert weights_of(model) == {"parameters": 23, "trained": 8}


COLLATORS = {
    "pad": pad,
    "drop": drop_short,
    "merge": keep_first,
    "join": DataCollatorWithFlattening(),
}


def arguments(folder: Path, **options: Any) -> TrainingArguments:
    given: dict[str, Any] = {
        "save_strategy": "no",
        "report_to": [],
        "use_cpu": True,
        "disable_tqdm": True,
    }
    return TrainingArguments(
        output_dir=str(folder), remove_unused_columns=False, **{**given, **options}
    )


@pytest.mark.parametrize("seed", range(24))
def test_a_trainers_samples_are_its_trained_rows(
    seed: int, tmp_path: Path, step_log: StepLogger
) -> None:
    """Loaders × collators × accumulation × last short batch × evaluation × compilation, drawn."""
    draw = random.Random(seed)
    seen = Seen()
    rows = draw.randint(9, 40)
    loader = draw.choice(["Trainer's", "Trainer's", "own", "stream"])
    collator = COLLATORS[["pad", "drop", "merge", "join"][seed % 4]]
    model: Any = Model()
    if draw.random() < 0.3:
        model.compile(backend="eager")
    options: dict[str, Any] = {
        "per_device_train_batch_size": draw.randint(1, 8),
        "gradient_accumulation_steps": draw.choice([1, 1, 2, 3]),
        "dataloader_drop_last": draw.random() < 0.3,
        "logging_steps": draw.choice([1, 3]),
        "accelerator_config": {"split_batches": draw.random() < 0.3, "dispatch_batches": False},
    }
    options |= {"max_steps": 7} if loader == "stream" else {"num_train_epochs": draw.choice([1, 2])}
    if draw.random() < 0.4:
        options |= {"eval_strategy": "steps", "eval_steps": 2, "eval_on_start": True}
    trainer_class = OwnLoaderTrainer if loader == "own" else CountingTrainer
    trainer_class(
        model,
        arguments(tmp_path, **options),
        data_collator=pad if loader == "own" else collator,
        train_dataset=Stream(rows) if loader == "stream" else texts(rows),
        eval_dataset=texts(5),
        callbacks=[hf_trainer.StepLogCallback()],
        seen=seen,
    ).train()
    assert list(process_of(step_log).steps.samples) == in_steps(seen)


def in_steps(seen: Seen) -> list[int]:
    """The rows of each step."""
    rows: dict[int, int] = {}
    for step, count in seen:
        rows[step] = rows.get(step, 0) + count
    return [rows[step] for step in sorted(rows)]


def test_joined_rows_without_numbers_in_the_batch_are_refused(
    tmp_path: Path, step_log: StepLogger
) -> None:
    for collator, samples, message in (
        (
            DataCollatorWithFlattening(return_position_ids=False),
            None,
            "the collator joins rows into one",
        ),
        (lambda rows: {"text": ["a"] * len(rows)}, None, "holds no tensor with a first dimension"),
        (DataCollatorWithFlattening(return_position_ids=False), 4, None),
    ):
        trainer = Trainer(
            Model(),
            arguments(tmp_path, max_steps=2, per_device_train_batch_size=4),
            data_collator=collator,
            train_dataset=texts(20),
            callbacks=[hf_trainer.StepLogCallback(samples)],
        )
        if message is None:
            trainer.train()
        else:
            with pytest.raises(
                ValueError, match=rf"{message}.*StepLogCallback\(samples_per_batch=...\)"
            ):
                trainer.train()
    assert list(process_of(step_log).steps.samples) == [4, 4]


@pytest.mark.parametrize(
    ("strategy", "joins_rows", "unit"),
    [
        ("bfd", True, None),
        ("bfd", False, BLOCKS),
        ("wrapped", True, BLOCKS),
        ("bfd_split", True, BLOCKS),
    ],
)
def test_only_blocks_of_whole_rows_are_rows(
    strategy: str, joins_rows: bool, unit: str | None
) -> None:
    """TRL's collator numbers the rows of joined blocks, and the pieces of cut ones."""
    options = SimpleNamespace(packing=True, packing_strategy=strategy, max_length=64)
    assert hf_trainer.unit_of_samples(options, joins_rows).get(WORK_UNIT) == unit


@pytest.mark.parametrize(
    ("data", "options"),
    [
        ("rows", {"per_device_train_batch_size": 4, "accelerator_config": {"split_batches": True}}),
        ("rows", {"per_device_train_batch_size": 4}),
        ("stream", {"per_device_train_batch_size": 3, "gradient_accumulation_steps": 2}),
    ],
    ids=["split", "filled up", "dispatched"],
)
def test_each_of_two_processes_counts_its_own_rows(
    data: str, options: dict[str, Any], tmp_path: Path
) -> None:
    script = tmp_path / "script.py"
    script.write_text(SHARED)
    end = run_forked(tmp_path, script, repr(options), data, processes=2)
    assert end.exit_code == 0, end.output
    accumulated = options.get("gradient_accumulation_steps", 1)
    for rank in (0, 1):
        samples = [step["samples"] for step in end.of_kind("step", rank)]
        seen = json.loads((tmp_path / f"rows_{rank}.json").read_text())
        assert sum(samples) == sum(seen)
        assert len(samples) == 7
        if accumulated == 1:
            assert samples == seen


class Network(L.LightningModule):  # type: ignore[misc,unused-ignore]
    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 1)
        self.seen = seen

    def training_step(self, batch: Any) -> torch.Tensor:
        parts = [
            part
            for part in (batch.values() if isinstance(batch, dict) else [batch])
            if part is not None
        ]
        self.seen.append((self.trainer.global_step, sum(len(part[0]) for part in parts)))
        return torch.cat([self.layer(part[0]) - part[1] for part in parts]).square().mean()

    def validation_step(self, batch: Any) -> None:
        self.layer(batch[0])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.01)


def lightning_trainer(folder: Path, **options: Any) -> L.Trainer:
    quiet: dict[str, Any] = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
    }
    callbacks = [lightning_callback.StepLogCallback()]
    return L.Trainer(
        default_root_dir=folder,
        accelerator="cpu",
        devices=1,
        callbacks=callbacks,
        enable_checkpointing=False,
        **quiet,
        **options,
    )


def pairs(count: int, **options: Any) -> DataLoader[Any]:
    return DataLoader([(torch.ones(2), torch.ones(1))] * count, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", range(8))
def test_lightnings_samples_are_its_trained_rows(
    seed: int, tmp_path: Path, step_log: StepLogger
) -> None:
    draw = random.Random(seed)
    seen = Seen()
    rows = draw.randint(9, 40)
    accumulated = draw.choice([1, 2, 3])
    budget = [list(range(begin, min(rows, begin + 1 + begin % 5))) for begin in range(0, rows, 5)]
    several = {"a": pairs(rows, batch_size=4), "b": pairs(rows // 2, batch_size=3)}
    loader: Any = [pairs(rows, batch_size=4), pairs(rows, batch_sampler=budget), several][seed % 3]
    network: Any = Network(seen)
    if draw.random() < 0.4:
        network.compile(backend="eager")
    trainer = lightning_trainer(
        tmp_path, max_epochs=2, accumulate_grad_batches=accumulated, val_check_interval=0.5
    )
    trainer.fit(network, loader, pairs(6, batch_size=5))
    assert list(process_of(step_log).steps.samples) == in_steps(seen)


@pytest.mark.parametrize("seed", range(6))
def test_several_trainings_in_a_process_count_on_and_a_search_counts_its_last_batch(
    seed: int, tmp_path: Path, step_log: StepLogger
) -> None:
    """K-fold, stages, and searches for a batch that fits into the memory, at any place among
    them.
    """
    draw = random.Random(seed)
    truth = list[int]()
    searches = list[str]()
    callback = hf_trainer.StepLogCallback()
    trainings = draw.randint(2, 3)
    for _ in range(trainings):
        seen = Seen()
        batch = draw.choice([8, 16])
        most = draw.choice([1000, batch - 1, 5])
        CountingTrainer(
            Model(),
            arguments(
                tmp_path, max_steps=6, per_device_train_batch_size=batch, auto_find_batch_size=True
            ),
            data_collator=pad,
            train_dataset=texts(200),
            callbacks=[draw.choice([callback, hf_trainer.StepLogCallback()])],
            seen=seen,
            most=most,
        ).train()
        truth += [rows for _, rows in seen[-6:]]
        searches += [f"{batch} became {truth[-1]}"] if truth[-1] < batch else []
    log = read(step_log)
    assert log.problems == ()
    assert log.measured is not None
    (process,) = log.measured.processes
    assert list(process.steps.samples) == truth
    assert list(process.steps.numbers) == list(range(1, 6 * trainings + 1))
    assert [phase.name for phase in process.phases].count(PAUSE) == trainings - 1
    assert sum(process.steps.waits) < 0.5 * sum(step.end - step.begin for step in process.steps)
    environment = read_environment(log)
    assert environment is not None
    assert environment.facts.get(BATCH_SEARCH) == (searches[-1] if searches else None)


def test_a_second_fit_counts_on_and_one_after_a_lack_of_memory_counts_alone(
    tmp_path: Path, step_log: StepLogger
) -> None:
    class Small(Network):
        def training_step(self, batch: Any) -> torch.Tensor:
            if len(batch[0]) > 4 and len(self.seen) >= 2:
                raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")
            return super().training_step(batch)

    seen = Seen()
    lightning_trainer(tmp_path, max_epochs=1).fit(Network(seen), pairs(20, batch_size=4))
    truth = in_steps(seen)
    for batch in (16, 8, 4):
        seen.clear()
        try:
            lightning_trainer(tmp_path, max_epochs=1).fit(Small(seen), pairs(64, batch_size=batch))
        except torch.OutOfMemoryError:
            continue
    log = read(step_log)
    assert log.measured is not None
    (process,) = log.measured.processes
    assert list(process.steps.samples) == [*truth, *in_steps(seen)] == [4] * 21
    assert [phase.name for phase in process.phases].count(PAUSE) == 1
    environment = read_environment(log)
    assert environment is not None
    assert environment.facts[BATCH_SEARCH] == "16 became 4"
