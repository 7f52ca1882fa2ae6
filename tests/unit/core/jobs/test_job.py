"""What attempts are submitted for, and where their runs' step logs are."""

from dataclasses import replace

import pytest

from tests.unit.run_samples import make_cell, make_run
from traindyno.core.documents.stored import JsonValue
from traindyno.core.jobs.job import (
    AttemptOwner,
    Job,
    owner_document,
    owner_id,
    parse_owner,
    runs_of,
    step_logs_prefix,
)
from traindyno.core.run.tokens import DataPreparation
from traindyno.core.s3_keys import checkpoints_prefix, step_log_prefix

RUNS = tuple(replace(make_run(make_cell(), trial), job_id="j1") for trial in (2, 1))
JOB = Job(execution_id="execution-1", job_id="j1", runs=RUNS)
PREPARATION = DataPreparation(
    execution_id="execution-1", key="0" * 64, packing=True, instance="ml.m7i.xlarge"
)


@pytest.mark.parametrize(
    ("owner", "kind", "name"),
    [
        (RUNS[0], "run", "0000000a-t2"),
        (JOB, "job", "j1"),
        (PREPARATION, "preparation", "prepare-00000000"),
    ],
)
def test_an_owner_is_read_as_it_was_written(owner: AttemptOwner, kind: str, name: str) -> None:
    document: dict[str, JsonValue] = owner_document(owner)
    assert list(document) == [kind]
    assert parse_owner(document) == owner
    assert owner_id(owner) == name


def test_the_runs_of_a_job_keep_their_order() -> None:
    assert [run.trial for run in runs_of(JOB)] == [2, 1]
    assert runs_of(PREPARATION) == ()


def test_a_run_logs_in_the_folder_of_its_carrying_job() -> None:
    shared = RUNS[0]
    alone = replace(RUNS[0], job_id=None)
    assert step_logs_prefix(shared).startswith(
        f"{checkpoints_prefix('execution-1', 'j1')}{shared.run_id}/"
    )
    assert f"{step_logs_prefix(alone)}job-a1/" == step_log_prefix(
        "execution-1", alone.run_id, "job-a1"
    )
