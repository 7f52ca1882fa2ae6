"""What an execution has spent and may yet spend, kept in its row so that no job can be admitted past the cap."""

from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import is_refused_condition

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

MICRO_USD = Decimal("0.000001")


class Spending:
    """``exposed_usd`` is what has been spent and what jobs in flight may cost at most; ``spent_usd`` what has been.

    ``pools`` names the ended jobs whose instances may still be kept warm: their worst case stays exposed.
    """

    def __init__(self, table: "Table") -> None:
        self._table = table

    def reserve(self, execution_id: str, usd: Decimal, *, cap_usd: Decimal) -> bool:
        """False if this job's worst case would take the execution past its cap."""
        amount = _rounded_up(usd)
        try:
            self._table.update_item(
                Key=_key(execution_id),
                UpdateExpression="ADD exposed_usd :usd",
                ConditionExpression="attribute_not_exists(exposed_usd) OR exposed_usd <= :room",
                ExpressionAttributeValues={":usd": amount, ":room": cap_usd - amount},
            )
        except ClientError as error:
            if not is_refused_condition(error):
                raise
            return False
        return True

    def settle(
        self, execution_id: str, *, reserved_usd: Decimal, spent_usd: Decimal, pool_of: str | None = None
    ) -> None:
        """The job has ended: what it really cost takes the place of what it might have cost.

        ``pool_of``: the job keeps its instances warm; ``reserved_usd`` is then without what that may cost.
        """
        spent = _rounded_up(spent_usd)
        self._table.update_item(
            Key=_key(execution_id),
            UpdateExpression="ADD exposed_usd :less, spent_usd :spent" + (", pools :pool" if pool_of else ""),
            ExpressionAttributeValues={
                ":less": spent - _rounded_up(reserved_usd),
                ":spent": spent,
                **({":pool": {pool_of}} if pool_of else {}),
            },
        )

    def settle_pool(self, execution_id: str, job_name: str, *, reserved_usd: Decimal, spent_usd: Decimal) -> bool:
        """The job's instances are kept no longer; False if that is settled already. Exactly once."""
        spent = _rounded_up(spent_usd)
        try:
            self._table.update_item(
                Key=_key(execution_id),
                UpdateExpression="ADD exposed_usd :less, spent_usd :spent DELETE pools :pool",
                ConditionExpression="contains(pools, :job)",
                ExpressionAttributeValues={
                    ":less": spent - _rounded_up(reserved_usd),
                    ":spent": spent,
                    ":pool": {job_name},
                    ":job": job_name,
                },
            )
        except ClientError as error:
            if not is_refused_condition(error):
                raise
            return False
        return True

    def unsettled_pools(self, execution_id: str) -> frozenset[str]:
        """Names of the jobs whose instances may still be kept warm."""
        item = self._table.get_item(Key=_key(execution_id), ConsistentRead=True).get("Item", {})
        names = item.get("pools")
        return frozenset(map(str, names)) if isinstance(names, set) else frozenset()

    def read(self, execution_id: str) -> tuple[Decimal, Decimal]:
        """Exposed and spent."""
        item = self._table.get_item(Key=_key(execution_id), ConsistentRead=True).get("Item", {})
        exposed, spent = item.get("exposed_usd", Decimal(0)), item.get("spent_usd", Decimal(0))
        assert isinstance(exposed, Decimal)
        assert isinstance(spent, Decimal)
        return exposed, spent


def _key(execution_id: str) -> dict[str, str]:
    return {"pk": f"execution#{execution_id}", "sk": "suite"}


def _rounded_up(usd: Decimal) -> Decimal:
    return usd.quantize(MICRO_USD, rounding=ROUND_CEILING)
