"""Does one run: reads it from the environment, loads, trains, evaluates and saves."""

import os
from math import ceil

from transformers import PreTrainedModel

from traindyno.callbacks import StepLog
from traindyno.core.outcome import Outcome
from traindyno.core.step_log_line import DIRECTORY_VARIABLE
from training.compilers import build_compiler
from training.data.choose_collate import choose_collate
from training.data.dataset import TokenDataset, load_dataset
from training.data.loader import StepBatches, load_steps
from training.doctor import environment_facts
from training.job import Job, find_job
from training.loop import run_steps
from training.model import build_model
from training.optimizer import build_optimizer, scaled_learning_rate
from training.precision import number_format
from training.process_group import end_process_group
from training.run_settings import RunSettings, read_run_settings
from training.strategies import Setup, Strategy, build_strategy
from training.topology import read_topology


def main() -> None:
    step_log = StepLog(os.environ.get(DIRECTORY_VARIABLE), otherwise=Outcome.INTERNAL_ERROR)
    step_log.open(environment_facts())
    run = read_run_settings(os.environ)
    job = find_job(run.workload)
    with step_log.phase("load"):
        setup = _set_up(run, step_log)
        strategy = build_strategy(setup)
        dataset = load_dataset(run.workload, run.settings, job, setup.topology)
        strategy.place(_build_model(run, job, dataset))
    _train(run, setup, strategy, dataset, step_log)
    end_process_group()
    step_log.close()


def _set_up(run: RunSettings, step_log: StepLog) -> Setup:
    topology = read_topology()
    compiler = build_compiler(run.settings.compiler)
    accelerator = compiler.accelerator(topology)
    compiler.log_compilations(step_log)
    step_log.measure_with(accelerator.make_clock, accelerator.peak_memory_bytes)
    return Setup(
        settings=run.settings,
        task=run.workload.task,
        topology=topology,
        accelerator=accelerator,
        compiler=compiler,
        number_format=number_format(run.settings.precision, accelerator.device),
    )


def _build_model(run: RunSettings, job: Job, dataset: TokenDataset) -> PreTrainedModel:
    return build_model(
        run.workload,
        run.settings,
        dataset.tokenizer,
        model_path=job.model_path,
        label_count=run.workload.label_count,
    )


def _train(run: RunSettings, setup: Setup, strategy: Strategy, dataset: TokenDataset, step_log: StepLog) -> None:
    settings = run.settings
    global_batch_size = settings.batch_size_per_device * settings.gradient_accumulation_steps * strategy.data_world_size
    learning_rate = scaled_learning_rate(settings, global_batch_size)
    optimizer = strategy.build_optimizer(lambda parameters: build_optimizer(parameters, settings, learning_rate))
    batches = StepBatches(
        dataset.train,
        choose_collate(run.workload, settings, dataset.tokenizer),
        settings,
        data_rank=strategy.data_rank,
        data_world_size=strategy.data_world_size,
    )
    step_count = min(run.measurement.max_steps, ceil(run.workload.examples / global_batch_size))
    run_steps(
        load_steps(batches, step_count, settings),
        setup=setup,
        strategy=strategy,
        optimizer=optimizer,
        step_log=step_log,
        should_stop=lambda _step: False,
    )
