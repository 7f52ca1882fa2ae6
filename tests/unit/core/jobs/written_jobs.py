"""Files as the parents of a shared job write them, for tests of what reads them."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from traindyno.core.jobs import journal_format

START = 1_700_000_000.0


@dataclass(slots=True, kw_only=True)
class WrittenJob:
    """The files of a job; its clock counts seconds since the first line of the parents, which run
    at the same time on each host.
    """

    job_name: str
    hosts: Sequence[str] = ("algo-1",)
    files: dict[str, bytes] = field(default_factory=dict)
    clock: float = 0.0
    began_at: float = 0.0
    place: int = 0
    started_at: float = START
    session_began: float = 0.0

    def start(self) -> None:
        """A parent on each host; again after an interruption."""
        self.session_began = self.clock
        self.place = 0
        self.write("parent_started", version=1)

    def write(self, event: str, **fields: Any) -> None:
        elapsed = round((self.clock - self.session_began) * 1000)
        line = {
            "event": event,
            "time": self.started_at + self.clock,
            "elapsed_milliseconds": elapsed,
            **fields,
        }
        for host in self.hosts:
            key = f"{journal_format.JOURNAL}/{self.job_name}/{host}.jsonl"
            self.files[key] = self.files.get(key, b"") + json.dumps(line).encode() + b"\n"

    def begin(self, run_id: str) -> None:
        self.began_at = self.clock
        self.place = self.place + 1
        self.write("run_began", run_id=run_id, place=self.place)

    def end(self, run_id: str, seconds: float, **fields: Any) -> None:
        """Writes the end of a run, so many seconds after its begin; with a ``place`` of None, it
        did not begin.
        """
        self.clock += seconds
        own = round((self.clock - self.began_at) * 1000)
        self.write("run_ended", run_id=run_id, reason="exited")
        for host in self.hosts:
            log = f"{run_id}/step_log/{self.job_name}/{host}.jsonl"
            self.files[log] = f"{run_id} on {host}\n".encode() * 3
            document = {
                "version": 1,
                "run_id": run_id,
                "job_name": self.job_name,
                "host": host,
                "hosts": list(self.hosts),
                "reason": "exited",
                "exit_code": 0,
                "signal": None,
                "failed_host": None,
                "failure": None,
                "oom_kills": 0,
                "began_at": self.started_at + self.began_at,
                "ended_at": self.started_at + self.clock,
                "own_milliseconds": own,
                "place": self.place,
                "leftovers": {"processes": 1},
                "files": {log: described(self.files[log])},
                **fields,
            }
            end = f"{run_id}/{journal_format.ENDED}/{self.job_name}/{host}.json"
            self.files[end] = json.dumps(document, indent=1).encode()

    def carry(self, run_id: str, seconds: float, **fields: Any) -> None:
        self.begin(run_id)
        self.end(run_id, seconds, **fields)

    def carry_logged(self, run_id: str, seconds: float, log: bytes, **fields: Any) -> None:
        """The step log of the run's only rank, on the job's only host."""
        (host,) = self.hosts
        folder = f"{run_id}/step_log/{self.job_name}"
        key = f"{folder}/rank-00000.1790000000000.jsonl"
        self.carry(run_id, seconds, files={key: described(log)}, **fields)
        del self.files[f"{folder}/{host}.jsonl"]
        self.files[key] = log


def described(contents: bytes) -> dict[str, Any]:
    return {"bytes": len(contents), "sha256": hashlib.sha256(contents).hexdigest()}


def written_job(job_name: str = "job-a1", *, hosts: int = 1) -> WrittenJob:
    job = WrittenJob(job_name=job_name, hosts=[f"algo-{number}" for number in range(1, hosts + 1)])
    job.start()
    return job
