"""A real local SageMaker service on a free port, beside an in-memory double of the AWS services
that it calls.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.aws_double import AwsDouble
from tests.local.chaos_lab import ChaosLab, chaos_lab
from tests.local.local_lab import LocalLab
from tests.local.recorded_calls import check_calls, writing_calls
from tests.local.running_service import RunningService, start_service

FAST = ("--checkpoint-sync-seconds", "0.2", "--stop-grace-seconds", "1")


@pytest.fixture(scope="module")
def aws() -> Iterator[AwsDouble]:
    double = AwsDouble()
    yield double
    double.close()


@pytest.fixture(scope="module")
def service(aws: AwsDouble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with start_service(Path(tmp_path_factory.mktemp("state")), aws.endpoint, *FAST) as running:
        yield running


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalLab]:
    """The local cloud with the deployed app.

    It is stopped and removed at the end, also after a failure.
    """
    lab = LocalLab(tmp_path_factory.mktemp("lab"))
    try:
        with writing_calls(lab.folder):
            lab.succeed("local", "up")
        yield lab
    finally:
        lab.traindyno("local", "down", "--erase", "--yes")
    check_calls(lab.folder)


@pytest.fixture(scope="session")
def chaos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChaosLab]:
    """A local cloud for rehearsals with faults. Each module that uses it sets its own faults."""
    folder = tmp_path_factory.mktemp("chaos")
    with writing_calls(folder), chaos_lab(folder) as started:
        yield started
    check_calls(folder)
