"""Makes a suite's tokens once, for all of its runs: the job's output is the folder that they read."""

import os

from traindyno.callbacks import StepLogger
from traindyno.core.jobs.outcome import Outcome
from traindyno.core.step_log.line import DIRECTORY_VARIABLE
from training.data.manifest import write_manifest
from training.data.prepare import tokenise
from training.hub_token import use_hub_token
from training.job import find_job
from training.model_check import refuse_model
from training.run_settings import RunSettings, run_facts


def prepare_data(run: RunSettings) -> None:
    assert run.tokens is not None
    step_log = StepLogger(os.environ.get(DIRECTORY_VARIABLE), otherwise=Outcome.INTERNAL_ERROR)
    step_log.open({"run": run_facts(run)})
    use_hub_token(run.workload.hub_token_secret)
    job = find_job(run.workload)
    refuse_model(run.workload, [run.settings], model_path=job.model_path)
    with step_log.phase("tokenise"):
        tokenise(run, job, job.save_folder)
        counts = write_manifest(job.save_folder, run.tokens.key)
    for name, part in counts.items():
        print(f"{name}: {part['sequences']:,} sequences, {part['tokens']:,} tokens", flush=True)  # noqa: T201
    step_log.close()
