"""The doubles that stand for DynamoDB and S3 keep the store's contract."""

import pytest

from tests.unit.lab_in_memory import MemoryObjects
from tests.unit.memory_table import MemoryTable
from tests.unit.store.contract import ObjectsContract, StoreContract
from traindyno.aws.objects import Objects
from traindyno.aws.table import Table


class TestMemoryTable(StoreContract):
    @pytest.fixture
    def table(self) -> Table:
        return MemoryTable()


class TestMemoryObjects(ObjectsContract):
    @pytest.fixture
    def objects(self) -> Objects:
        return MemoryObjects()
