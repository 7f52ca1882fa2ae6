"""A store of jobs of its own, and what injects faults into them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from localcloud.sagemaker_service.jobs.faults import FaultInjector
from localcloud.sagemaker_service.jobs.job_store import JobStore
from tests.unit.localcloud.engine_samples import open_store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    opened = open_store(tmp_path)
    yield opened
    opened.close()


@pytest.fixture
def faults(store: JobStore) -> FaultInjector:
    return FaultInjector(store)
