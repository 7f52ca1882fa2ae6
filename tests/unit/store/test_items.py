"""Rows and their items: what another version of the lab wrote is refused with a sentence."""

from decimal import Decimal

import pytest

from traindyno.store.executions import ExecutionRow
from traindyno.store.items import RowUnreadable


def test_a_row_of_another_version_is_refused_with_a_sentence() -> None:
    earlier = {"pk": "execution#e1", "sk": "suite", "execution_id": "e1", "name": "sample", "started_at": Decimal(1)}
    with pytest.raises(RowUnreadable, match=r"row execution#e1, suite: .*another version.*suite_name: got"):
        ExecutionRow.from_item(earlier)
