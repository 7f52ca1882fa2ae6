from typing import Any

from tests.unit.lab_in_memory import EXECUTION, NOW, SETTINGS, MemoryLab, make_lab
from tests.unit.stubbed import stubbed
from traindyno.aws.submission import submit_run
from traindyno.aws.training_jobs import TrainingJobs
from traindyno.aws.warm_pools import release_warm_pools


def lab_with_warm_job(warm_pool_seconds: int) -> MemoryLab:
    lab, (run, *_) = make_lab()
    submit_run(run, "token", services=lab.services, settings=SETTINGS, now=NOW)
    lab.suites.suites[EXECUTION] |= {"name": "quick-look", "warm_pool_seconds": warm_pool_seconds}
    lab.jobs.warm = [*lab.jobs.jobs, "traindyno-quick-look-00000000-another-execution"]
    return lab


def release(lab: MemoryLab) -> int:
    return release_warm_pools(EXECUTION, lab="traindyno", suites=lab.suites, jobs=lab.jobs)


def test_instances_that_an_execution_kept_warm_are_released_and_no_others() -> None:
    lab = lab_with_warm_job(600)
    assert release(lab) == 1
    assert lab.jobs.warm == ["traindyno-quick-look-00000000-another-execution"]


def test_a_suite_that_keeps_nothing_warm_asks_for_nothing() -> None:
    lab = lab_with_warm_job(0)
    assert release(lab) == 0
    assert len(lab.jobs.warm) == 2


def test_releasing_what_another_job_has_taken_over_is_nothing_to_do() -> None:
    config: dict[str, Any] = {"TrainingJobName": "a", "ResourceConfig": {"KeepAlivePeriodInSeconds": 0}}
    with stubbed("sagemaker") as (client, stubber):
        arn = "arn:aws:sagemaker:us-east-1:111111111111:training-job/a"
        stubber.add_response("update_training_job", {"TrainingJobArn": arn}, config)
        stubber.add_client_error("update_training_job", "ValidationException", "The warm pool is in use")
        assert TrainingJobs(client).release_instances("a")
        assert not TrainingJobs(client).release_instances("a")


def test_only_pools_that_are_available_are_listed() -> None:
    summary = {
        "TrainingJobName": "a",
        "TrainingJobArn": "arn:aws:sagemaker:us-east-1:111111111111:training-job/a",
        "CreationTime": NOW,
        "TrainingJobStatus": "Completed",
    }
    asked = {"NameContains": "traindyno-x-", "WarmPoolStatusEquals": "Available"}
    with stubbed("sagemaker") as (client, stubber):
        stubber.add_response("list_training_jobs", {"TrainingJobSummaries": [summary]}, asked)
        assert TrainingJobs(client).keeping_warm("traindyno-x-") == ["a"]
