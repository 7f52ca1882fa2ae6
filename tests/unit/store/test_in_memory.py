"""The doubles that stand for DynamoDB and S3 keep the store's contract; a row of another version is
refused.
"""

from decimal import Decimal

import pytest

from tests.unit.lab_in_memory import MemoryObjects
from tests.unit.memory_table import MemoryTable
from tests.unit.store.contract import ObjectsContract, StoreContract
from traindyno.aws.objects import Objects
from traindyno.aws.table import Table
from traindyno.store.executions import ExecutionRow
from traindyno.store.items import RowUnreadable


class TestMemoryTable(StoreContract):
    @pytest.fixture
    def table(self) -> Table:
        return MemoryTable()


class TestMemoryObjects(ObjectsContract):
    @pytest.fixture
    def objects(self) -> Objects:
        return MemoryObjects()


def test_a_row_of_another_version_is_refused_with_a_sentence() -> None:
    earlier = {
        "pk": "execution#e1",
        "sk": "suite",
        "execution_id": "e1",
        "name": "sample",
        "started_at": Decimal(1),
    }
    with pytest.raises(
        RowUnreadable, match=r"row execution#e1, suite was written by another version.*suite_name"
    ):
        ExecutionRow.from_item(earlier)
