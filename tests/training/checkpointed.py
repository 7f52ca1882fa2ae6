"""One attempt of a run that keeps checkpoints, from its document to the losses of the steps that it
did.
"""

import os
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from tests.training.run_documents import parse_run, run_document
from traindyno.callbacks import StepLogger
from traindyno.core.step_log.line import LoggedStep
from training.checkpoints.checkpoints import Checkpoints
from training.checkpoints.stop_request import StopRequest
from training.data.dataset import load_dataset
from training.data.once_per_host import remove_made_folders
from training.models.model import build_model
from training.process.job import JobPaths, find_job
from training.process.process_group import end_process_group, read_topology
from training.process.run_settings import RunSettings
from training.run.train import train
from training.strategies import build_strategy, set_up

MODEL = {"model_type": "gpt2", "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 16}
SYNTHETIC = {"model": {"config": {**MODEL, "vocab_size": 96}}, "dataset": {"format": "synthetic"}}
STREAMED = {
    "model": {"config": MODEL},
    "dataset": {"path": "s3://bucket/texts", "input_mode": "stream"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """An attempt of a checkpointed run.

    ``stops_after`` is the step after which it is lost; ``is_told``: a signal asks for a checkpoint
    in that step.

    ``checkpoints`` of None: the run keeps none. ``texts`` is a folder that is streamed in place of
    synthetic data, ``model`` another configuration than GPT-2's.
    """

    settings: dict[str, Any]
    checkpoints: str | None
    every_steps: int | None = 2
    steps: int = 8
    stops_after: int | None = None
    is_told: bool = False
    texts: str | None = None
    model: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """The losses of a run by step, the random state [N] after them, and the message of a run that
    was told to stop.
    """

    losses: dict[int, float]
    random_state: torch.Tensor
    parameters: dict[str, torch.Tensor]
    stopped: str = ""


def run_of(attempt: Attempt) -> RunSettings:
    synthetic = {**SYNTHETIC, "model": {"config": attempt.model}} if attempt.model else SYNTHETIC
    document = run_document(
        workload=STREAMED if attempt.texts else synthetic,
        settings={"batch_size_per_device": 2, "optimizer": "adamw", **attempt.settings},
        measurement={"max_steps": attempt.steps, "checkpoint_every_steps": attempt.every_steps},
    )
    if not attempt.texts:
        del document["workload"]["tokenizer"]
    return parse_run(document)


def train_attempts(attempts: list[Attempt]) -> list[Ended]:
    """Train them one after the other in this process."""
    torch.set_num_threads(1)
    ended = []
    for number, attempt in enumerate(attempts):
        os.environ["TRAINING_JOB_NAME"] = f"attempt-{number}"
        ended.append(train_attempt(attempt))
    remove_made_folders()
    end_process_group()
    return ended


def train_attempt(attempt: Attempt) -> Ended:
    run = run_of(attempt)
    topology = read_topology()
    setup = set_up(run.settings, run.workload.task, topology)
    strategy = build_strategy(setup)
    dataset = load_dataset(run, _job_of(attempt, run), topology)
    strategy.place(build_model(run.workload, run.settings, dataset.tokenizer, model_path=None))
    step_log = StepLogger(str(Path(attempt.checkpoints or tempfile.mkdtemp()).parent / "log"))
    losses: dict[int, float] = {}
    step_log.observe_with(lambda steps: losses.update(_losses(steps)))
    stop = StopRequest(topology)

    def should_stop(log: StepLogger) -> bool:
        if attempt.is_told and log.steps + 1 == attempt.stops_after:
            stop.request()
        return not attempt.is_told and log.steps == attempt.stops_after

    checkpoints = None
    if attempt.checkpoints is not None:
        checkpoints = Checkpoints(
            Path(attempt.checkpoints),
            run=run,
            setup=setup,
            strategy=strategy,
            stop=stop,
            step_log=step_log,
        )
    stopped = ""
    try:
        train(
            run,
            setup,
            strategy,
            dataset,
            step_log=step_log,
            should_stop=should_stop,
            checkpoints=checkpoints,
        )
    except Exception as error:  # noqa: BLE001 -- the test compares the message
        stopped = f"{type(error).__name__}: {error}"
    random_state = torch.get_rng_state()
    step_log.close()
    if distributed.is_initialized():
        distributed.barrier()
    parameters = dict(strategy.stream_state_dict())
    return Ended(losses=losses, random_state=random_state, parameters=parameters, stopped=stopped)


def _job_of(attempt: Attempt, run: RunSettings) -> JobPaths:
    """Streamed files are read from a folder, as they would be from S3."""
    job = find_job(run.workload)
    return job if attempt.texts is None else replace(job, data_root=Path(attempt.texts))


def _losses(steps: list[LoggedStep]) -> dict[int, float]:
    """The losses by step; a pipeline's rank of the last stage holds them."""
    return {step.step: step.loss for step in steps if step.loss is not None}
