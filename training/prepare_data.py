"""Makes a suite's tokens once, for all of its runs: the job's output is the folder that they read."""

import os

from traindyno.callbacks import StepLogger
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import DIRECTORY_VARIABLE
from traindyno.core.suite.preparation import preparation_document
from training.data.manifest import write_manifest
from training.data.prepare import tokenise
from training.hub_token import use_hub_token
from training.job import find_job
from training.model_check import refuse_model
from training.run_settings import PreparationSettings


def prepare_data(asked: PreparationSettings) -> None:
    preparation, workload = asked.preparation, asked.workload
    step_log = StepLogger(os.environ.get(DIRECTORY_VARIABLE), otherwise=Outcome.INTERNAL_ERROR)
    step_log.open({"preparation": preparation_document(preparation)})
    use_hub_token(workload.hub_token_secret)
    job = find_job(workload)
    refuse_model(workload, preparation.tensor_degrees, model_path=job.model_path)
    with step_log.phase("tokenise"):
        tokenise(workload, job, job.save_folder, packing=preparation.packing)
        counts = write_manifest(job.save_folder, preparation.key)
    for name, part in counts.items():
        print(f"{name}: {part['sequences']:,} sequences, {part['tokens']:,} tokens", flush=True)  # noqa: T201
    step_log.close()
