"""The scatter of single runs that was measured on this machine, and what a job is told of it."""

from math import exp
from pathlib import Path

import pytest

from localcloud.home import Home
from localcloud.run_repeats import (
    DOCTOR,
    DOCUMENT,
    MOST_KEPT,
    KeptRepeats,
    Repeats,
    keep,
    measure,
    measured_share,
    repeats_of,
)
from localcloud.sagemaker_service.host.container_tree import make_host_tree
from localcloud.sagemaker_service.host.process_environment import LocalImage, process_environment
from localcloud.sagemaker_service.host.toolkit import HostResources, read_program
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from localcloud.sagemaker_service.settings import ServiceSettings
from tests.local.jobs import job_request
from tests.unit.run_samples import known
from traindyno.core.search.run_scatter import ACCELERATORS
from traindyno.core.step_log.line import SCATTER_VARIABLE


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_equal_runs_of_several_cells_are_pooled() -> None:
    # logarithms 0, 0.1, 0.2: squares of 0.01, 0 and 0.01; 0 and 0.2: twice 0.01
    found = repeats_of([[1.0, exp(0.1), exp(0.2)], [5.0, 5.0 * exp(0.2)], [3.0]])
    assert (found.degrees, found.squares) == (3, pytest.approx(0.04))


def test_a_machine_is_known_after_four_degrees_of_freedom(home: Home) -> None:
    assert measured_share(home) is None
    keep(home, "first", repeats_of([[1.0]]))
    keep(home, "first", Repeats(degrees=3, squares=0.03))
    assert measured_share(home) is None
    keep(home, DOCTOR, Repeats(degrees=4, squares=0.25))
    assert measured_share(home) == pytest.approx(0.2)  # 0.28 / 7 is 0.2²


def test_a_measurement_counts_once_and_the_oldest_go(home: Home) -> None:
    for number in range(MOST_KEPT + 5):
        keep(home, f"execution-{number}", Repeats(degrees=4, squares=1.0))
    for _ in range(2):
        keep(home, DOCTOR, Repeats(degrees=4, squares=0.0))
    kept = known(home.read_as(DOCUMENT, KeptRepeats)).measured
    assert [*kept] == [*(f"execution-{number}" for number in range(6, MOST_KEPT + 5)), DOCTOR]


def test_runs_that_agree_by_chance_are_not_taken_for_no_scatter(home: Home) -> None:
    keep(home, DOCTOR, Repeats(degrees=4, squares=0.0))
    assert measured_share(home) == ACCELERATORS


def test_equal_runs_are_timed() -> None:
    told: list[str] = []
    assert measure(tell=told.append, runs=2, seconds=0.05).degrees == 1
    assert len(told) == 2
    assert all("ms a step" in each for each in told)


@pytest.mark.parametrize(
    ("instance", "is_measured", "scatter"),
    [("local.cpu", True, "0.0500"), ("local.cpu", False, None), ("ml.m5.large", True, None)],
)
def test_only_a_job_on_this_machine_is_told_what_was_measured(
    instance: str, is_measured: bool, scatter: str | None, home: Home
) -> None:
    if is_measured:
        keep(home, DOCTOR, Repeats(degrees=4, squares=0.01))
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
        settings=ServiceSettings(
            port=1, state_folder=home.state("sagemaker"), aws_endpoint="http://aws", cores=(0,)
        ),
        shell={},
    )
    assert environment.get(SCATTER_VARIABLE) == scatter
