"""Turns to send a request that AWS limits for the whole account: one row that all functions of all executions share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from traindyno.aws.client_errors import is_refused_condition
from traindyno.store.row_values import to_row

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table

KEY = {"pk": "turns#CreateTrainingJob", "sk": "account"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """When a function may send its request, and how it waits for that."""

    at: float
    turns: "Turns"
    seconds_between: float
    clock: Callable[[], float]
    sleep: Callable[[float], None]

    def wait(self) -> None:
        """Whoever comes so late that the next one's turn has begun takes another, or both would ask at once."""
        at = self.at
        while self.clock() - at > self.seconds_between:
            at = self.turns.take(now=self.clock(), seconds_between=self.seconds_between)
        self.sleep(max(0.0, at - self.clock()))


class Turns:
    def __init__(self, table: "Table") -> None:
        self._table = table

    def take(self, *, now: float, seconds_between: float) -> float:
        """When to send the request, in epoch seconds: each call gets another time, ``seconds_between`` apart."""
        while True:
            queued = self._set_next("next_at + :between", "next_at > :now", now=now, seconds_between=seconds_between)
            if queued is not None:
                return queued - seconds_between
            condition = "attribute_not_exists(next_at) OR next_at <= :now"
            free = self._set_next(":now + :between", condition, now=now, seconds_between=seconds_between)
            if free is not None:
                return now

    def forget(self, *, now: float) -> None:
        """Nobody is waited for any longer: the next turn is free."""
        self._table.update_item(
            Key=KEY, UpdateExpression="SET next_at = :now", ExpressionAttributeValues={":now": to_row(now)}
        )

    def _set_next(self, value: str, condition: str, *, now: float, seconds_between: float) -> float | None:
        values: dict[str, Any] = {":now": to_row(now), ":between": to_row(float(seconds_between))}
        try:
            updated = self._table.update_item(
                Key=KEY,
                UpdateExpression=f"SET next_at = {value}",
                ConditionExpression=condition,
                ExpressionAttributeValues=values,
                ReturnValues="UPDATED_NEW",
            )
        except ClientError as error:
            if not is_refused_condition(error):
                raise
            return None
        return float(updated["Attributes"]["next_at"])  # type: ignore[arg-type]
