"""The local cloud's thread settings don't win over a suite's."""

from pathlib import Path

import pytest

from localcloud.sagemaker_service.host.container_tree import make_host_tree
from localcloud.sagemaker_service.host.process_environment import LocalImage, process_environment
from localcloud.sagemaker_service.host.toolkit import HostResources, read_program
from localcloud.sagemaker_service.jobs.job import Engine, new_job
from localcloud.sagemaker_service.settings import ServiceSettings
from tests.local.jobs import job_request


@pytest.mark.parametrize(("asked", "threads"), [({}, "4"), ({"OMP_NUM_THREADS": "2"}, "2")])
def test_a_suites_thread_setting_is_the_only_one(
    asked: dict[str, str], threads: str, tmp_path: Path
) -> None:
    """MKL takes OMP_NUM_THREADS unless MKL_NUM_THREADS is set, which would win over the suite's."""
    job = new_job(job_request("job", Environment=asked), arn="arn", engine=Engine.PROCESS, now_ms=0)
    settings = ServiceSettings(
        port=1, state_folder=tmp_path, aws_endpoint="http://aws", cores=(0, 1, 2, 3)
    )
    environment = process_environment(
        job,
        read_program(job),
        make_host_tree(tmp_path, "algo-1"),
        HostResources(gpu_count=0, core_count=4, master_port=1),
        image=LocalImage(python="python"),
        packages=None,
        settings=settings,
        shell={"MKL_NUM_THREADS": "1"},
        temporary=tmp_path,
    )
    threads_by_library = {
        name: value for name, value in environment.items() if name.endswith("_NUM_THREADS")
    }
    assert threads_by_library == {"OMP_NUM_THREADS": threads}
