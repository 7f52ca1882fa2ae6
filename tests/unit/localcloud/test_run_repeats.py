"""The scatter of single runs that was measured on this machine, and what a job is told of it."""

from math import exp, sqrt
from pathlib import Path

import pytest

from localcloud.home import Home
from localcloud.run_repeats import (
    DOCTOR,
    DOCUMENT,
    MOST_KEPT,
    KeptRepeats,
    keep,
    measured_share,
    scatter_in,
)
from localcloud.sagemaker_service.host.container_tree import make_host_tree
from localcloud.sagemaker_service.host.process_environment import LocalImage, process_environment
from localcloud.sagemaker_service.host.toolkit import HostResources, read_program
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from localcloud.sagemaker_service.settings import ServiceSettings
from tests.local.jobs import job_request
from tests.unit.run_samples import known
from traindyno.core.step_log.line import SCATTER_VARIABLE
from traindyno.figures.in_job.run_scatter import ACCELERATORS

# Five runs whose logarithms are 0.2 apart have a standard deviation of 0.2 √2.5.
APART = [exp(0.2 * place) for place in range(5)]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_equal_runs_of_several_cells_are_pooled() -> None:
    # squares of logarithms 0, 0.1, 0.2: 0.02; of 0 and 0.2: 0.02; of three that agree: 0
    groups = [[1.0, exp(0.1), exp(0.2)], [5.0, 5.0 * exp(0.2)], [3.0], [2.0, 2.0, 2.0]]
    assert scatter_in(groups) == pytest.approx(sqrt(0.04 / 5))
    assert scatter_in(groups[:3]) is None  # three degrees of freedom


def test_a_measurement_counts_once_and_the_oldest_go(home: Home) -> None:
    assert measured_share(home) is None
    keep(home, "alone", [[1.0]])
    for number in range(MOST_KEPT + 5):
        keep(home, f"execution-{number}", [[1.0, 1.0]])
    for _ in range(2):
        keep(home, DOCTOR, [APART])
    kept = known(home.read_as(DOCUMENT, KeptRepeats)).measured
    assert [*kept] == [*(f"execution-{number}" for number in range(6, MOST_KEPT + 5)), DOCTOR]
    # 19 pairs that agree, and four degrees of freedom with squares of 4 × 0.1
    assert measured_share(home) == pytest.approx(sqrt(0.4 / 23))


def test_runs_agreeing_by_chance_are_not_taken_for_no_scatter(home: Home) -> None:
    keep(home, DOCTOR, [[1.0] * 5])
    assert measured_share(home) == ACCELERATORS


@pytest.mark.parametrize(
    ("instance", "is_measured", "scatter"),
    [("local.cpu", True, "0.3162"), ("local.cpu", False, None), ("ml.m5.large", True, None)],
)
def test_only_a_job_on_this_machine_is_told_the_measured_scatter(
    instance: str, is_measured: bool, scatter: str | None, home: Home
) -> None:
    if is_measured:
        keep(home, DOCTOR, [APART])
    resources = {"InstanceType": instance, "InstanceCount": 1, "VolumeSizeInGB": 1}
    request = job_request("job", ResourceConfig=resources)
    job = new_job(request, arn="arn", engine=Engine.PROCESS, now_ms=0)
    environment = process_environment(
        job,
        read_program(job),
        make_host_tree(home.folder, "algo-1"),
        HostResources(gpu_count=0, core_count=4, master_port=1),
        image=LocalImage(python="python"),
        packages=None,
        temporary=home.folder,
        settings=ServiceSettings(
            port=1, state_folder=home.state("sagemaker"), aws_endpoint="http://aws", cores=(0,)
        ),
        shell={},
    )
    assert environment.get(SCATTER_VARIABLE) == scatter
