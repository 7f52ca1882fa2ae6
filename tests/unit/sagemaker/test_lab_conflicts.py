"""What a suite asks for and the jobs of this lab can't do."""

from dataclasses import replace
from typing import Any

import pytest

from tests.sentences import Snapshot
from tests.unit.sagemaker.test_request import SETTINGS
from tests.unit.suites import script_document, small_document, small_suite
from traindyno.core.suite.checks.suite_check import parse_suite
from traindyno.core.suite.suite import Suite
from traindyno.sagemaker.images import find_conflicts
from traindyno.sagemaker.job_settings import JobSettings, LabJobs, read_lab_jobs, write_lab_jobs

SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:hub-AbCdEf"
IN_S3 = {"model": "s3://bucket/model/", "dataset": {"path": "s3://bucket/data/"}}
NO_NETWORK = "this lab's containers have no network. Expected"


def conflicts(suite: Suite, settings: JobSettings = SETTINGS, **jobs: Any) -> list[str]:
    return [*find_conflicts(suite, replace(settings, jobs=LabJobs(**jobs)))]


def suite_with(**workload: Any) -> Suite:
    return small_suite(workload={**small_document()["workload"], **workload})


def test_a_secret_must_be_readable_for_the_labs_jobs() -> None:
    suite = suite_with(hub_token_secret=SECRET)
    (conflict,) = conflicts(suite, hub_token_secrets=("arn:other",))
    assert "may not read" in conflict
    assert "add it to hub_token_secrets in labs/LAB.toml" in conflict
    assert conflicts(suite, hub_token_secrets=(SECRET,)) == []


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        ({"model": "gpt2"}, "workload.model.path: got gpt2: {} an S3 prefix"),
        (
            {"dataset": {"path": "nyu-mll/glue"}},
            "workload.dataset.path: got nyu-mll/glue: {} an S3 prefix",
        ),
        (
            {"dataset": {"path": "s3://b/d/", "input_mode": "stream"}},
            "workload.dataset.input_mode: got stream: {} File or FastFile",
        ),
    ],
)
def test_an_isolated_container_reaches_nothing_but_its_channels(
    workload: dict[str, Any], expected: str
) -> None:
    (conflict,) = conflicts(suite_with(**{**IN_S3, **workload}), isolates_network=True)
    assert conflict == expected.format(NO_NETWORK)
    assert conflicts(suite_with(**IN_S3), isolates_network=True) == []


def test_accelerators_need_the_labs_image_for_them(snapshot: Snapshot) -> None:
    """The stack of these images may have failed, or be built later: the lab works on CPUs without
    it.
    """
    trainium = small_suite(
        training={"instance": "ml.trn1.32xlarge"}, matrix={"compiler": ["xla"]}, baseline={}
    )
    built = replace(SETTINGS, lab="mine", images={"none": "lab:cpu"})
    (conflict,) = conflicts(trainium, replace(built, images={**built.images, "gpu": "lab:efa"}))
    assert conflict.startswith(
        "ml.trn1.32xlarge: this lab has no current image for Trainium: set neuron = true in "
        "labs/mine.toml"
    )
    assert "build it with: cdk deploy --all -c lab=mine;" in conflict
    assert (
        conflicts(trainium, replace(built, images={**built.images, "neuron": "lab:neuron"})) == []
    )
    (conflict,) = conflicts(small_suite(), built)
    snapshot(conflict)
    assert conflicts(small_suite(), replace(built, images={**built.images, "gpu": "lab:efa"})) == []
    assert conflicts(small_suite(training={"instance": "ml.m5.large"}), built) == []
    assert conflicts(trainium) == [], "a lab without any image rehearses"


def test_decisions_of_a_person_about_jobs_survive_a_functions_environment() -> None:
    jobs = LabJobs(
        subnet_ids=("subnet-1",),
        encrypts_traffic=True,
        tags={"team": "vision"},
        hub_token_secrets=(SECRET,),
    )
    assert read_lab_jobs(write_lab_jobs(jobs)) == jobs
    assert read_lab_jobs("{}") == LabJobs()


def test_an_image_unpublished_in_the_region_is_said_at_planning() -> None:
    image = "smdistributed-modelparallel:2.5.1-gpu-py311-cu124"
    suite = parse_suite(script_document(workload={**script_document()["workload"], "image": image}))
    assert conflicts(suite) == []
    (conflict,) = conflicts(suite, replace(SETTINGS, region="af-south-1"))
    assert conflict.startswith(f"{image} is not published in af-south-1; regions that have it: ")
