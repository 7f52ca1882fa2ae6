"""What a job is billed: the time in which it held instances, and less than that on simulated spot
instances.
"""

from dataclasses import replace
from typing import Any

import pytest

from localcloud.sagemaker_service.jobs.job import (
    NOMINAL_SPOT_SAVING,
    Engine,
    SecondaryStatus,
    TrainingJob,
    ended,
    moved,
    new_job,
)
from localcloud.sagemaker_service.jobs.job_view import described

S = SecondaryStatus


def job_of(engine: Engine, *, is_spot: bool, end_ms: int = 1_100_000) -> TrainingJob:
    """A job that started for 100 s and then held billed instances until ``end_ms``."""
    request: dict[str, Any] = {
        "TrainingJobName": "job",
        "AlgorithmSpecification": {},
        "OutputDataConfig": {"S3OutputPath": "s3://lab/out"},
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
        "EnableManagedSpotTraining": is_spot,
    }
    job = new_job(request, arn="arn", engine=engine, now_ms=0)
    job = moved(job, S.DOWNLOADING, now_ms=100_000)
    job = replace(job, training_start_ms=100_000)
    if end_ms > 200_000:
        job = moved(job, S.TRAINING, now_ms=200_000)
    return ended(job, S.COMPLETED, now_ms=end_ms)


def test_a_simulated_spot_job_is_billed_for_less_than_it_trained() -> None:
    answer = described(job_of(Engine.REPLAY, is_spot=True))
    assert answer["TrainingTimeInSeconds"] == 1000
    # SageMaker states the saving as (1 - billable / training).
    assert answer["BillableTimeInSeconds"] == 400
    assert 1 - answer["BillableTimeInSeconds"] / answer["TrainingTimeInSeconds"] == pytest.approx(
        NOMINAL_SPOT_SAVING
    )


@pytest.mark.parametrize(("engine", "is_spot"), [(Engine.REPLAY, False), (Engine.PROCESS, True)])
def test_other_jobs_are_billed_for_all_of_it(engine: Engine, is_spot: bool) -> None:
    """A local job on this machine's own cores saves nothing by being a spot job."""
    assert described(job_of(engine, is_spot=is_spot))["BillableTimeInSeconds"] == 1000


@pytest.mark.parametrize(("held_ms", "billed_seconds"), [(0, 0), (1, 1), (499, 1), (1_501, 2)])
def test_no_job_that_held_an_instance_is_free(held_ms: int, billed_seconds: int) -> None:
    """Else a cap of one job's worst case would let a second one start."""
    job = job_of(Engine.PROCESS, is_spot=False, end_ms=100_000 + held_ms)
    answer = described(job)
    assert answer["BillableTimeInSeconds"] == answer["TrainingTimeInSeconds"] == billed_seconds
