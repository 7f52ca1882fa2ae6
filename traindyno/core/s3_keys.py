"""The keys of every object in the results bucket.

Training jobs write below ``runs/``, ``trained/`` and ``prepared/`` only. Documents that decide
about money, runs or verdicts have keys below ``suites/`` and ``tokens/``, which no job can write.
"""

import re
from typing import TypeGuard

S3_SCHEME = "s3://"
RUNS_PREFIX = "runs/"
TRAINED_PREFIX = "trained/"
PREPARED_PREFIX = "prepared/"
SAMPLES_FILE = "evaluation_samples.json"
SUITES_PREFIX = "suites/"
TOKEN_MARKERS_PREFIX = "tokens/"
CODE_PREFIX = "code/"
PACKED = re.compile(rf"/{CODE_PREFIX}(?:[0-9a-f]{{64}}|[^/]+/script)/sourcedir\.tar\.gz\Z")
DATA_PREFIX = "data/"
MODELS_PREFIX = "models/"


def suite_key(execution_id: str) -> str:
    return f"{SUITES_PREFIX}{execution_id}/suite.json"


def plan_key(execution_id: str) -> str:
    return f"{SUITES_PREFIX}{execution_id}/plan.json"


def rounds_prefix(execution_id: str) -> str:
    return f"{SUITES_PREFIX}{execution_id}/rounds/"


def lane_key(execution_id: str, round_number: int, lane_id: str, *, wave: int) -> str:
    """The runs of one wave of a lane in one round: the items of its Distributed Map.

    Waves count from 1.
    """
    return f"{rounds_prefix(execution_id)}{round_number}/{lane_id}-{wave}.json"


def results_prefix(execution_id: str) -> str:
    return f"{SUITES_PREFIX}{execution_id}/results/"


def result_key(execution_id: str, run_id: str) -> str:
    return f"{results_prefix(execution_id)}{run_id}.json"


def preparations_prefix(execution_id: str) -> str:
    """The results of the execution's preparation jobs; separate from its runs, because only runs
    are judged.
    """
    return f"{SUITES_PREFIX}{execution_id}/preparations/"


def preparation_key(execution_id: str, preparation_id: str) -> str:
    return f"{preparations_prefix(execution_id)}{preparation_id}.json"


def report_prefix(execution_id: str) -> str:
    return f"{SUITES_PREFIX}{execution_id}/report/"


def verdict_key(execution_id: str) -> str:
    return f"{report_prefix(execution_id)}verdict.json"


def report_data_key(execution_id: str) -> str:
    return f"{report_prefix(execution_id)}report.json"


def report_html_key(execution_id: str) -> str:
    return f"{report_prefix(execution_id)}report.html"


def run_prefix(execution_id: str, run_id: str) -> str:
    """The prefix of everything that the run's jobs write; runs that share a job have that of the
    job's id.
    """
    return f"{RUNS_PREFIX}{execution_id}/{run_id}/"


def checkpoints_prefix(execution_id: str, run_id: str) -> str:
    """All attempts of a run share it, so that the next one resumes from the checkpoints of an
    interrupted one.
    """
    return f"{run_prefix(execution_id, run_id)}checkpoints/"


def shared_run_prefix(execution_id: str, job_id: str, run_id: str) -> str:
    """What a run that shares its job writes: its folder of the job's checkpoints."""
    return f"{checkpoints_prefix(execution_id, job_id)}{run_id}/"


def step_log_prefix(execution_id: str, run_id: str, job_name: str) -> str:
    """Prefix of the step log of a run with a job of its own."""
    return f"{checkpoints_prefix(execution_id, run_id)}step_log/{job_name}/"


def output_prefix(execution_id: str, run_id: str, *, is_kept: bool = False) -> str:
    """Prefix of the run's outputs.

    ``is_kept`` selects the place where large objects do not expire, for runs that may take several
    jobs.
    """
    if is_kept:
        return f"{TRAINED_PREFIX}{execution_id}/{run_id}/"
    return f"{run_prefix(execution_id, run_id)}output/"


def saved_model_key(execution_id: str, run_id: str, job_name: str, *, is_kept: bool = False) -> str:
    """The key at which SageMaker stores the model folder of a training job."""
    prefix = output_prefix(execution_id, run_id, is_kept=is_kept)
    return f"{prefix}{job_name}/output/model.tar.gz"


def samples_key(execution_id: str, run_id: str, job_name: str) -> str:
    """The job's evaluation samples with its model's answers, beside its step log."""
    return f"{step_log_prefix(execution_id, run_id, job_name)}{SAMPLES_FILE}"


def served_model_key(deployment_name: str) -> str:
    """The deployment's own copy of the model.

    Training jobs can't write it, and objects below ``runs/`` expire.
    """
    return f"{MODELS_PREFIX}{deployment_name}/model.tar.gz"


def deployment_key(deployment_name: str) -> str:
    """The record of a deployment. It is written before anything is created, and deleted last."""
    return f"{MODELS_PREFIX}{deployment_name}/deployment.json"


def code_key(sha256: str) -> str:
    return f"{CODE_PREFIX}{sha256}/sourcedir.tar.gz"


def is_packed_by_client(uri: str) -> bool:
    """Whether ``traindyno run`` packed this tarball, so that it has the program of shared jobs: by
    its key.
    """
    return PACKED.search(uri) is not None


def execution_code_key(execution_id: str) -> str:
    """The execution's own copy of the lab's training code: a later deployment does not change
    it.
    """
    return f"{CODE_PREFIX}{execution_id}/sourcedir.tar.gz"


def execution_script_key(execution_id: str) -> str:
    """The execution's own copy of the suite's script, which is uploaded under its content and
    expires when unused.
    """
    return f"{CODE_PREFIX}{execution_id}/script/sourcedir.tar.gz"


def job_document_key(execution_id: str, job_id: str) -> str:
    """What a shared job runs. Training jobs can't write it."""
    return f"{CODE_PREFIX}{execution_id}/jobs/{job_id}.json"


def data_prefix(sha256: str) -> str:
    return f"{DATA_PREFIX}{sha256}/"


def tokens_prefix(key: str) -> str:
    """The prefix of all tokens with one content key, without a final slash: a job's output path."""
    return f"{PREPARED_PREFIX}{key}"


def tokens_folder(key: str, job_name: str) -> str:
    """The prefix at which SageMaker stores the uncompressed model folder of the job that made the
    tokens.
    """
    return f"{tokens_prefix(key)}/{job_name}/output/model/"


def ready_tokens_key(key: str) -> str:
    """The marker, written last: it names the one folder that is complete. Jobs can't write it."""
    return f"{TOKEN_MARKERS_PREFIX}{key}.json"


def s3_uri(bucket: str, key: str) -> str:
    return f"{S3_SCHEME}{bucket}/{key}"


def is_s3_uri(path: str | None) -> TypeGuard[str]:
    return path is not None and path.startswith(S3_SCHEME)
