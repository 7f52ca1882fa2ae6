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


def job_of(engine: Engine, *, is_spot: bool) -> TrainingJob:
    """A job that started for 100 s and then held billed instances for 1,000 s."""
    request: dict[str, Any] = {
        "TrainingJobName": "job",
        "AlgorithmSpecification": {},
        "OutputDataConfig": {"S3OutputPath": "s3://lab/out"},
        "ResourceConfig": {"InstanceType": "ml.g5.xlarge", "InstanceCount": 1},
        "EnableManagedSpotTraining": is_spot,
    }
    job = new_job(request, arn="arn", engine=engine, now_ms=0)
    job = moved(job, S.DOWNLOADING, now_ms=100_000)
    job = moved(job, S.TRAINING, now_ms=200_000)
    job = replace(job, training_start_ms=100_000)
    return ended(job, S.COMPLETED, now_ms=1_100_000)


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
