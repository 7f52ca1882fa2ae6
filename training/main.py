"""One run, from the settings in its environment to the model that it saves."""

import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from traindyno.callbacks import StepLogger
from traindyno.callbacks.checkpoints import checkpoint_folder
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.run.processes import adapters_of, tensor_divisions
from traindyno.core.step_log.line import DIRECTORY_VARIABLE
from training.checkpoints.checkpoints import Checkpoints
from training.checkpoints.stop_request import StopRequest
from training.data.dataset import TokenDataset, load_dataset
from training.data.sequences import Sequences
from training.models.blueprint import Blueprint
from training.models.flops import measure_size
from training.models.hub import use_hub_token
from training.models.model import build_model
from training.models.model_check import check_model, refuse
from training.models.saved_form import SavedForm, saved_form
from training.process.environment import environment_facts
from training.process.job import JobPaths, find_job
from training.process.process_group import end_process_group, read_topology
from training.process.run_settings import (
    RunSettings,
    read_run_settings,
    run_facts,
    with_accumulation,
)
from training.run.chunk_check import refuse_unless_the_head_is_apart
from training.run.crash_handling import CrashHandler
from training.run.document_check import refuse_unless_documents_are_apart
from training.run.ending import exit_now
from training.run.evaluate import EvaluationSchedule, evaluate
from training.run.saving import add_best, keep_best, save_model
from training.run.saving_adapters import AdaptedForm, adapted_form, save_adapted
from training.run.train import Stopping, collate_for, train
from training.serving.model_folder import make_servable
from training.strategies import Setup, TrainingStrategy, build_strategy, set_up


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What a run has before its first step."""

    setup: Setup
    strategy: TrainingStrategy
    dataset: TokenDataset
    #: The form of the model that is saved; None if the run saves no model.
    form: SavedForm | None
    #: The form of the run's adapter; None without one.
    adapted: AdaptedForm | None

    def save(self, folder: Path) -> None:
        """Saves the model as it is now. All ranks call it."""
        tensors = self.strategy.stream_state_dict()
        if self.setup.topology.is_first and self.form is not None:
            save_trained = (
                save_model if self.adapted is None else partial(save_adapted, self.adapted)
            )
            save_trained(
                tensors,
                self.form.model,
                self.dataset.tokenizer,
                folder,
                generation_config=self.form.generation_config,
            )
        deque(tensors, maxlen=0)  # the other ranks send their parts

    def round_to_saved(self) -> bool:
        """Returns whether weights got other values; an adapter is saved in single precision."""
        if self.form is None or self.adapted is not None:
            return False
        return self.form.round(self.strategy.named_tensors())


def main() -> None:
    step_log = StepLogger(os.environ.get(DIRECTORY_VARIABLE), otherwise=Outcome.INTERNAL_ERROR)
    stop = StopRequest(read_topology())
    CrashHandler(step_log, read_topology(), stop).install()
    run = with_accumulation(read_run_settings(os.environ), read_topology())
    use_hub_token(run.workload.hub_token_secret)
    step_log.open({**environment_facts(), **run_facts(run)})
    job = find_job(run.workload)
    stopping = Stopping(run.measurement, run.target)
    step_log.observe_with(stopping.observe)
    with step_log.phase("load"):
        loaded = _load(run, job, step_log)
    evaluations = _evaluations(run, loaded, step_log, stopping)
    train(
        run,
        loaded.setup,
        loaded.strategy,
        loaded.dataset,
        step_log=step_log,
        should_stop=stopping.should_stop,
        after_step=evaluations.after_step,
        checkpoints=_checkpoints(run, loaded, step_log, stop),
    )
    evaluations.at_end(are_rounded=loaded.round_to_saved())
    if run.measurement.save_model:
        with step_log.phase("save"):
            loaded.save(job.save_folder)
            if loaded.setup.topology.is_first:
                _finish_model(run, job.save_folder, loaded.dataset, step_log.steps)
    end_process_group()
    step_log.close()
    exit_now(0)


def _load(run: RunSettings, job: JobPaths, step_log: StepLogger) -> Loaded:
    """Checks the model, and places it on the devices of the run."""
    refuse(
        check_model(
            run.workload,
            tensor_divisions([run.settings]),
            adapters=adapters_of([run.settings]),
            model_path=job.model_path,
            weights_path=job.model_path,
            runs_code=run.workload.trust_remote_code,
        )
    )
    setup = set_up(run.settings, run.workload.task, read_topology())
    setup.compiler.log_compilations(step_log)
    step_log.measure_with(setup.accelerator.make_clock, setup.accelerator.peak_memory_bytes)
    strategy = build_strategy(setup)
    dataset = load_dataset(run, job, setup.topology)
    blueprint = build_model(
        run.workload,
        run.settings,
        dataset.tokenizer,
        model_path=job.model_path,
        label_names=dataset.label_names,
        adapter_path=job.adapter,
    )
    adapted = adapted_form(run, blueprint, job)
    form = _form(run, dataset, job.model_path)
    _log_size(step_log, run, blueprint)
    strategy.place(blueprint)
    _refuse_after_trial(setup, strategy, dataset, blueprint)
    return Loaded(setup=setup, strategy=strategy, dataset=dataset, form=form, adapted=adapted)


def _evaluations(
    run: RunSettings, loaded: Loaded, step_log: StepLogger, stopping: Stopping
) -> EvaluationSchedule:
    def observe(metrics: Mapping[str, float]) -> None:
        folder = checkpoint_folder()
        if run.measurement.save_best and folder is not None:
            with step_log.phase("save"):
                keep_best(Path(folder), step_log.steps, metrics, loaded.save)
        stopping.observe_evaluation(metrics)

    def evaluate_on(held_out: Sequences) -> Mapping[str, float]:
        collate = collate_for(run, loaded.dataset)
        return evaluate(loaded.strategy, loaded.setup, held_out, collate)

    return EvaluationSchedule(
        run.measurement, loaded.dataset.evaluation, evaluate_on, observe, step_log
    )


def _form(run: RunSettings, dataset: TokenDataset, model_path: str | None) -> SavedForm | None:
    """The form in which the model is saved; None if the run saves no model."""
    if not run.measurement.save_model:
        return None
    return saved_form(
        run.workload,
        dataset.tokenizer,
        run.measurement.save_dtype,
        model_path=model_path,
        label_names=dataset.label_names,
    )


def _refuse_after_trial(
    setup: Setup, strategy: TrainingStrategy, dataset: TokenDataset, blueprint: Blueprint
) -> None:
    """Refuses what only the placed model shows, on a few tokens."""
    vocabulary_size = dataset.special_tokens.vocabulary_size
    refuse_unless_documents_are_apart(setup, strategy, vocabulary_size)
    model_type = blueprint.config.model_type
    refuse_unless_the_head_is_apart(setup, strategy, model_type, vocabulary_size)


def _log_size(step_log: StepLogger, run: RunSettings, blueprint: Blueprint) -> None:
    assert run.workload.sequence_length is not None
    size = measure_size(
        run.workload.task, blueprint.config, run.workload.sequence_length, blueprint.adapter
    )
    step_log.model(size.parameters, size.flops_per_token, size.formula, size.trained)


def _finish_model(run: RunSettings, folder: Path, dataset: TokenDataset, last_step: int) -> None:
    checkpoints = checkpoint_folder()
    if run.measurement.save_best and checkpoints is not None:
        add_best(Path(checkpoints), folder, last_step)
    adapter = run.settings.adapter
    is_whole = adapter is None or adapter.merged
    if is_whole and not run.workload.trust_remote_code:  # an endpoint runs no code of a model
        make_servable(folder, run.workload, dataset)


def _checkpoints(
    run: RunSettings, loaded: Loaded, step_log: StepLogger, stop: StopRequest
) -> Checkpoints | None:
    """The checkpoints of the run; None if the job has no folder for them."""
    folder = checkpoint_folder()
    if folder is None:
        return None
    return Checkpoints(
        Path(folder),
        run=run,
        setup=loaded.setup,
        strategy=loaded.strategy,
        stop=stop,
        step_log=step_log,
        base=loaded.adapted.identity if loaded.adapted else {},
    )


if __name__ == "__main__":
    main()
