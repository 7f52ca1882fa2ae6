"""DynamoDB and S3, as MiniStack serves them, keep the same contract as the doubles of the unit tests."""

import pytest

from tests.local.local_lab import LocalLab
from tests.unit.store.contract import ObjectsContract, StoreContract
from traindyno.aws.objects import Objects
from traindyno.aws.table import Table

pytestmark = pytest.mark.local


class TestTable(StoreContract):
    @pytest.fixture
    def table(self, lab: LocalLab) -> Table:
        return Table(lab.table())


class TestObjects(ObjectsContract):
    @pytest.fixture
    def objects(self, lab: LocalLab) -> Objects:
        return Objects(lab.client("s3"), lab.deployment().bucket)
