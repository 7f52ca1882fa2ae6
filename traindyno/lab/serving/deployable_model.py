"""Finds the trained model of an execution to deploy: that of the recommended cell, or of a named one."""

from traindyno.core.jobs.outcome import Outcome
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.s3_keys import samples_key, suite_key, verdict_key
from traindyno.core.serving.deployment import SERVED_TASKS, ModelNotServable
from traindyno.core.serving.samples import parse_samples
from traindyno.core.suite.choices import DatasetFormat
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.suite.suite_file import read_stored_suite
from traindyno.core.verdict.verdict import parse_verdict
from traindyno.store.results import load_results
from traindyno.store.results_bucket import ResultsBucket


def find_deployable_model(execution_id: str, cell: str | None, bucket: ResultsBucket) -> tuple[Suite, Run, str]:
    """The suite, the run, and the training job that saved its model. ``cell``: its id or its label.

    Raises ModelNotServable with what to do, before anything is started.
    """
    suite = bucket.find_as(suite_key(execution_id), read_stored_suite)
    if suite is None:
        raise ModelNotServable(
            f"the lab has no suite of execution {execution_id}: expected an execution that passed its planning, as"
            " `traindyno list` shows it"
        )
    reason = why_not_servable(suite)
    if reason is not None:
        raise ModelNotServable(f"execution {execution_id} has no model to deploy: {reason}")
    results = load_results(bucket, execution_id)
    wanted = cell or _recommended(execution_id, bucket, results)
    of_cell = [each for each in results if wanted in (each.run.cell.cell_id, each.run.cell.label)]
    if not of_cell:
        raise ModelNotServable(f"execution {execution_id} has no result of cell {wanted}; {_choices(results)}")
    completed = [each for each in of_cell if each.outcome is Outcome.COMPLETED and each.attempts]
    if not completed:
        ends = ", ".join(sorted({each.outcome for each in of_cell}))
        raise ModelNotServable(f"cell {wanted} of {execution_id}: expected a completed run, found {ends}")
    chosen = max(completed, key=lambda each: each.run.trial)
    job_name = chosen.attempts[-1].job_name
    key = samples_key(execution_id, chosen.run.run_id, job_name)
    found = bucket.find_as(key, parse_samples)
    if found is None or not found.samples:
        raise ModelNotServable(
            f"run {chosen.run.run_id} left no evaluation samples at s3://{bucket.name}/{key}: it was simulated, shared"
            " its job with others, streamed its data without an evaluation_split, or its data holds no text"
        )
    return suite, chosen.run, job_name


def why_not_servable(suite: Suite) -> str | None:
    """None where ``traindyno deploy`` can serve the models of the suite's runs."""
    workload = suite.workload
    if workload.task not in SERVED_TASKS:
        served = ", ".join(SERVED_TASKS)
        return f"the inference handler can't serve models of task {workload.task}, expected one of {served}"
    if workload.trust_remote_code:
        return "workload.trust_remote_code is true, and an endpoint runs no Python code of a model; expected false"
    if workload.dataset is not None and workload.dataset.format is DatasetFormat.SYNTHETIC:
        return "synthetic data has no tokenizer, so its models can't be served; expected a dataset of text"
    if not suite.measurement.save_model:
        return "the suite keeps no model; add to it measurement: {save_model: true}, then run it again"
    return None


def _recommended(execution_id: str, bucket: ResultsBucket, results: list[RunResult]) -> str:
    verdict = bucket.find_as(verdict_key(execution_id), parse_verdict)
    if verdict is None or verdict.recommended is None:
        found = "recommends no cell" if verdict else "has no verdict: it is still running, or it failed"
        raise ModelNotServable(f"execution {execution_id} {found}; {_choices(results)}")
    return verdict.recommended


def _choices(results: list[RunResult]) -> str:
    cells = {each.run.cell.cell_id: each.run.cell.label for each in results}
    listed = ", ".join(f"{cell_id} ({label})" for cell_id, label in cells.items())
    return f"name one of its cells with --cell: {listed or 'it has none yet'}"
