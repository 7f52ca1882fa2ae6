"""Rows of executions: the data with which a suite was planned, and its verdict when it is
judged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Self

from traindyno.aws.table import Item, Table
from traindyno.core.costs.prices import Price
from traindyno.core.suite.choices import GoalKind
from traindyno.store.items import attribute, attributes_of, read_row

IS_STOPPING = "is_stopping"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The short form of the verdict for lists."""

    finding: str
    headline: str
    recommended: str | None
    is_simulated: bool
    #: Runs that have ended.
    run_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRow:
    """The data with which a suite was planned, and its verdict when it is judged."""

    execution_id: str
    suite_name: str
    #: Epoch seconds, like ``latest_end``.
    started_at: float
    #: The end of the suite's ``max_hours``.
    latest_end: float
    #: Planned runs: the most that a race may start.
    run_count: int
    #: Jobs that carry the planned runs.
    job_count: int
    goal: GoalKind
    #: The cap that holds: jobs can't write it.
    max_usd: Decimal
    max_steps: int
    #: The most trials of a cell; a run that confirms a leader has the next number.
    trials: int
    #: Source and images of the deployment that planned the suite: its jobs keep them.
    source_s3_uri: str
    #: The copy of the suite's script; None without a script, or with one in another bucket.
    script_s3_uri: str | None = None
    images: Mapping[str, str] = field(default_factory=dict)
    #: Instance type → price, as planned.
    prices: Mapping[str, Price] = field(default_factory=dict)
    #: Whether it runs a user's script, which decides itself how many steps it takes.
    is_script: bool = False
    #: Whether the search may end before all planned runs.
    is_race: bool = False
    #: Whether no further job of the execution may start.
    is_stopping: bool = False
    #: The execution whose results and spending are also this one's, and the one that has taken over
    #: this one's.
    continues: str | None = None
    continued_by: str | None = None
    judgement: Judgement | None = None

    def to_item(self) -> dict[str, Any]:
        return {**execution_key(self.execution_id), **attributes_of(self)}

    @classmethod
    def from_item(cls, item: Item) -> Self:
        return read_row(item, cls)


class ExecutionRows:
    def __init__(self, table: Table) -> None:
        self._table = table

    def create(self, row: ExecutionRow) -> None:
        """Safe to repeat: an existing row is not changed."""
        self._table.put(row.to_item(), condition="attribute_not_exists(pk)")

    def find(self, execution_id: str) -> ExecutionRow | None:
        """None if the suite was refused, or is not planned yet."""
        item = self._table.get(execution_key(execution_id))
        return ExecutionRow.from_item(item) if item else None

    def judge(self, execution_id: str, judgement: Judgement) -> None:
        self._table.update(
            execution_key(execution_id),
            "SET judgement = :judgement",
            values={":judgement": attribute(judgement)},
            condition="attribute_exists(pk)",
        )

    def mark_stopping(self, execution_id: str) -> None:
        """Let SubmitRun start no further job of this execution.

        A refused suite has no row and nothing to stop.
        """
        self._table.update(
            execution_key(execution_id),
            f"SET {IS_STOPPING} = :yes",
            values={":yes": True},
            condition="attribute_exists(pk)",
        )


def execution_key(execution_id: str) -> dict[str, str]:
    return {"pk": f"execution#{execution_id}", "sk": "suite"}
