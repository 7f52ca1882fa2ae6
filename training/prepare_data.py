"""The job that prepares a suite once, for all of its runs.

It checks the model, and makes the tokens or copies the model from the Hub. The job's output is the
folder to read.
"""

import os
from functools import partial
from pathlib import Path

from traindyno.callbacks import StepLogger
from traindyno.core.documents.plain import plain_values
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.run.record import PreparationRecord
from traindyno.core.step_log.line import DIRECTORY_VARIABLE
from training.data.dataset import write_manifest
from training.data.prepare import tokenise
from training.models.hub import copy_model, use_hub_token
from training.models.model_check import check_model, refuse
from training.process.job import find_job


def prepare_data(asked: PreparationRecord) -> None:
    preparation = asked.preparation
    workload = asked.workload
    step_log = StepLogger(os.environ.get(DIRECTORY_VARIABLE), otherwise=Outcome.INTERNAL_ERROR)
    step_log.open({"preparation": plain_values(preparation)})
    use_hub_token(workload.hub_token_secret)
    job = find_job(workload)
    model = job.model_path
    weights = (
        model if model is not None and Path(model).is_dir() else None
    )  # a Hub model's are checked once copied
    check = partial(check_model, workload, runs_code=workload.trust_remote_code)
    refuse(
        check(
            preparation.divisions,
            preparation.stage_counts,
            preparation.adapters,
            model_path=model,
            weights_path=weights,
        )
    )
    if preparation.stages_model:
        with step_log.phase("copy_model"):
            copy_model(workload, job.save_folder)
        copied = str(job.save_folder)
        refuse(check((), model_path=copied, weights_path=copied))
    if preparation.packing is not None:
        with step_log.phase("tokenise"):
            tokenise(
                workload,
                job,
                job.save_folder,
                packing=preparation.packing,
                sequences=preparation.sequences,
            )
    counts = write_manifest(job.save_folder, preparation.key)
    for name, part in counts.items():
        print(f"{name}: {part['sequences']:,} sequences, {part['tokens']:,} tokens", flush=True)  # noqa: T201
    step_log.close()
