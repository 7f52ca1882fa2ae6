"""Stores jobs and undelivered events in one SQLite file, which a restart of the service reads."""

import json
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cattrs

from localcloud.sagemaker_service.jobs.job import Engine, TrainingJob

# A change of SCHEMA or of TrainingJob with which stored rows can't be read needs another
# cloud.FORMAT.
SCHEMA = """
create table if not exists jobs (
  name text primary key, created_ms integer, modified_ms integer, status text, engine text,
  claimed integer, instance_type text, instance_count integer, is_spot integer, document text);
create index if not exists jobs_by_creation on jobs (created_ms, name);
create index if not exists jobs_by_status on jobs (status, created_ms);
create table if not exists events (
  event_id integer primary key autoincrement, due_seconds real, failures integer, document text);
create index if not exists events_by_due on events (due_seconds);
create table if not exists documents (kind text, key text, document text, primary key (kind, key));
"""
# Without detailed validation reading is faster. The service wrote this data itself, so problems are
# rare.
CONVERTER = cattrs.Converter(detailed_validation=False)
UNFINISHED = "status not in ('Completed', 'Failed', 'Stopped')"
# The events of a changed job, each with the time of its first delivery attempt by the machine's
# monotonic clock, in seconds
EventsOf = Callable[[TrainingJob], Sequence[tuple[float, dict[str, Any]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEvent:
    event_id: int
    failures: int
    document: dict[str, Any]


class JobStore:
    """A change of a job and its events are one transaction."""

    def __init__(self, path: Path, events_of: EventsOf) -> None:
        self._events_of = events_of
        self._lock = threading.RLock()
        self._connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._connection.executescript(
            f"pragma journal_mode=wal; pragma synchronous=normal; begin; {SCHEMA} commit;"
        )

    def add(self, job: TrainingJob) -> bool:
        """Adds the job. False if there is a job of that name, which is not changed."""
        with self._transaction() as connection:
            if self._read(job.name) is not None:
                return False
            self._write(connection, job)
            self._write_events(connection, job)
        return True

    def get(self, name: str) -> TrainingJob | None:
        with self._lock:
            return self._read(name)

    def change(self, name: str, change: Callable[[TrainingJob], TrainingJob]) -> TrainingJob:
        """Applies ``change`` to the stored job.

        If its status changes, its events are written too.
        """
        with self._transaction() as connection:
            before = self._read(name)
            if before is None:
                raise KeyError(name)
            after = change(before)
            if after is not before:
                self._write(connection, after)
            if (after.status, after.secondary_status) != (before.status, before.secondary_status):
                self._write_events(connection, after)
        return after

    def select(
        self, where: str, parameters: Sequence[object], order: str, limit: int
    ) -> list[TrainingJob]:
        query = f"select document from jobs where {where} order by {order} limit ?"
        with self._lock:
            rows = self._connection.execute(query, (*parameters, limit)).fetchall()
        return [_structured(document) for (document,) in rows]

    def unfinished(self, engine: Engine) -> list[TrainingJob]:
        return self.select(f"engine = ? and {UNFINISHED}", (engine,), "created_ms, name", -1)

    def next_waiting(self, engine: Engine) -> TrainingJob | None:
        jobs = self.select(
            f"engine = ? and claimed = 0 and {UNFINISHED}", (engine,), "created_ms, name", 1
        )
        return jobs[0] if jobs else None

    def instances_in_use(self, *, is_spot: bool) -> dict[str, int]:
        query = (
            f"select instance_type, sum(instance_count) from jobs where {UNFINISHED} and is_spot = "
            "? group by 1"
        )
        with self._lock:
            return dict(self._connection.execute(query, (int(is_spot),)).fetchall())

    def count_by_status(self) -> dict[str, int]:
        with self._lock:
            return dict(
                self._connection.execute(
                    "select status, count(*) from jobs group by status"
                ).fetchall()
            )

    def due_events(self, now_seconds: float, limit: int) -> list[StoredEvent]:
        query = (
            "select event_id, failures, document from events where due_seconds <= ? order by "
            "event_id limit ?"
        )
        with self._lock:
            rows = self._connection.execute(query, (now_seconds, limit)).fetchall()
        return [
            StoredEvent(event_id=row[0], failures=row[1], document=json.loads(row[2]))
            for row in rows
        ]

    def pending_event_count(self, due_before_seconds: float = float("inf")) -> int:
        with self._lock:
            query = "select count(*) from events where due_seconds <= ?"
            count: int = self._connection.execute(query, (due_before_seconds,)).fetchone()[0]
        return count

    def latest_change_ms(self) -> int:
        with self._lock:
            latest: int = self._connection.execute(
                "select coalesce(max(modified_ms), 0) from jobs"
            ).fetchone()[0]
        return latest

    def remove_events(self, event_ids: Sequence[int]) -> None:
        with self._transaction() as connection:
            connection.executemany(
                "delete from events where event_id = ?", [(event_id,) for event_id in event_ids]
            )

    def postpone_event(self, event_id: int, due_seconds: float) -> None:
        with self._transaction() as connection:
            statement = (
                "update events set due_seconds = ?, failures = failures + 1 where event_id = ?"
            )
            connection.execute(statement, (due_seconds, event_id))

    def make_events_due(self) -> None:
        with self._transaction() as connection:
            connection.execute("update events set due_seconds = 0")

    def write_document(self, kind: str, key: str, document: object | None) -> None:
        """Replaces the document, or removes it for None."""
        with self._transaction() as connection:
            if document is None:
                connection.execute("delete from documents where kind = ? and key = ?", (kind, key))
            else:
                row = (kind, key, json.dumps(document))
                connection.execute("insert or replace into documents values (?, ?, ?)", row)

    def documents(self, kind: str) -> dict[str, Any]:
        with self._lock:
            rows = self._connection.execute(
                "select key, document from documents where kind = ? order by rowid", (kind,)
            ).fetchall()
        return {key: json.loads(document) for key, document in rows}

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("begin immediate")
            try:
                yield self._connection
            except BaseException:  # the end of a thread must not leave a transaction open
                self._connection.execute("rollback")
                raise
            self._connection.execute("commit")

    def _read(self, name: str) -> TrainingJob | None:
        row = self._connection.execute(
            "select document from jobs where name = ?", (name,)
        ).fetchone()
        return None if row is None else _structured(row[0])

    def _write(self, connection: sqlite3.Connection, job: TrainingJob) -> None:
        row = (
            job.name,
            job.created_ms,
            job.modified_ms,
            job.status,
            job.engine,
            int(job.claimed),
            job.instance_type,
            job.instance_count,
            int(job.is_spot),
            json.dumps(CONVERTER.unstructure(job)),
        )
        connection.execute("insert or replace into jobs values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

    def _write_events(self, connection: sqlite3.Connection, job: TrainingJob) -> None:
        for due_seconds, document in self._events_of(job):
            row = (due_seconds, json.dumps(document))
            connection.execute(
                "insert into events (due_seconds, failures, document) values (?, 0, ?)", row
            )


def _structured(document: str) -> TrainingJob:
    return CONVERTER.structure(json.loads(document), TrainingJob)
