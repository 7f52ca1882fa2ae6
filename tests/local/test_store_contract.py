"""DynamoDB and S3, as MiniStack serves them, keep the same contract as the doubles of the unit
tests.
"""

import pytest

from localcloud.cloud import environment_of
from tests.local.local_lab import LocalLab
from tests.local.recorded_calls import as_if_in, make_table
from tests.unit.store.contract import ObjectsContract, StoreContract
from traindyno.aws.objects import Objects
from traindyno.aws.table import Table

pytestmark = pytest.mark.local


CONTRACT_TABLE = "store-contract"


@pytest.fixture(scope="module")
def own_table(lab: LocalLab) -> Table:
    """The contract's open attempts need their own table: the sweep of the lab would stop them as
    jobs of ended executions.
    """
    with as_if_in(environment_of(lab.home)):
        make_table(CONTRACT_TABLE)
    return Table(lab.table(CONTRACT_TABLE))


class TestTable(StoreContract):
    @pytest.fixture
    def table(self, own_table: Table) -> Table:
        return own_table


class TestObjects(ObjectsContract):
    @pytest.fixture
    def objects(self, lab: LocalLab) -> Objects:
        return Objects(lab.client("s3"), lab.deployment().bucket)
