"""Trains with the product's own loop, data and strategies, as a training job would, and reads its
step log.
"""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bench.race_case import RaceCase
from bench.trained import Trained
from traindyno.callbacks import StepLogger
from traindyno.core.run.record import RunMeasurement
from traindyno.core.run.settings import Settings
from traindyno.core.run.workload import Workload
from traindyno.core.suite.suite_file import parse_part
from training.data.batch import Batch, token_count
from training.data.dataset import TokenDataset, load_dataset
from training.data.loader import StepBatches
from training.data.prepare import tokenise
from training.models.model import build_model
from training.process.job import JobPaths
from training.process.process_group import Topology
from training.process.run_settings import RunSettings
from training.run.train import collate_for, train
from training.strategies import build_strategy, set_up


def read_run(case: RaceCase, changes: Mapping[str, Any]) -> RunSettings:
    return RunSettings(
        run_id=case.name,
        workload=parse_part(case.workload, Workload),
        settings=parse_part({**case.settings, **changes}, Settings),
        measurement=RunMeasurement(max_steps=case.steps),
    )


def load_sequences(run: RunSettings, data_folder: str | None, scratch: Path) -> TokenDataset:
    """Tokenised once per kind of packing, as PrepareData does once per suite."""
    job = JobPaths(data_root=None, model_path=None, tokenizer_path=None, save_folder=scratch)
    if data_folder is not None:
        prepared = scratch / ("packed" if run.settings.packing else "unpacked")
        if not prepared.exists():
            data = replace(job, data_root=Path(data_folder))
            tokenise(run.workload, data, prepared, packing=run.settings.packing)
        job = replace(job, data_root=prepared)
    return load_dataset(run, job, Topology())


def batches_of_steps(run: RunSettings, dataset: TokenDataset) -> list[list[Batch]]:
    """The batches that ``train_with_ours`` trains on, by step."""
    assert dataset.train is not None
    collate = collate_for(run, dataset)
    batches = StepBatches(dataset.train, collate, run.settings, data_rank=0, data_world_size=1)
    return [batches[number] for number in range(run.measurement.max_steps)]


def count_tokens(run: RunSettings, dataset: TokenDataset, rows: int) -> int:
    """Counts the tokens of the first rows as our step log does."""
    assert dataset.train is not None
    samples = np.arange(rows)
    return token_count(collate_for(run, dataset)(dataset.train, samples, samples))


def train_with_ours(run: RunSettings, dataset: TokenDataset) -> Trained:
    with tempfile.TemporaryDirectory() as folder:
        step_log = StepLogger(folder)
        setup = set_up(run.settings, run.workload.task, Topology())
        step_log.measure_with(setup.accelerator.make_clock, setup.accelerator.peak_memory_bytes)
        strategy = build_strategy(setup)
        blueprint = build_model(run.workload, run.settings, dataset.tokenizer, model_path=None)
        strategy.place(blueprint)
        train(run, setup, strategy, dataset, step_log=step_log, should_stop=lambda _: False)
        step_log.close()
        return _read(Path(folder))


def _read(folder: Path) -> Trained:
    (path,) = folder.rglob("rank-*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    steps = [line for line in lines if line["kind"] == "step"]
    return Trained(
        step_seconds=tuple(step["end"] - step["begin"] for step in steps),
        tokens=tuple(step["tokens"] for step in steps),
        losses=tuple(step["loss"] for step in steps),
        peak_memory_bytes=steps[-1]["peak_memory_bytes"],
    )
