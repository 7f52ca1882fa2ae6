"""A local cloud for rehearsals: every job simulated, several runs at once, retries without their long waits."""

import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localcloud import cloud, deployment
from localcloud.home import Home
from tests.local.local_lab import LocalLab

# The clock must not jump here: jobs that outlast an abort have to be there when it comes.
OPTIONS = ("--engine", "replay", "--grant-quotas", "1000", "--speed-up", "3000", "--jump-when-quiet-seconds", "86400")
CONTEXT = {"lanes_at_once": "4", "lane_concurrency": "8"}
# Of MiniStack: what the state machine waits between attempts, as a share of the real time.
WAIT_SCALE = {"SFN_WAIT_SCALE": "0.01"}


@dataclass(frozen=True, slots=True)
class ChaosLab:
    lab: LocalLab
    options: tuple[str, ...]

    @property
    def home(self) -> Home:
        return self.lab.home

    def administer(self, path: str, document: dict[str, Any] | None = None) -> Any:
        """GET, or POST of the document, at the local SageMaker service."""
        port = cloud.require_ports(self.home).sagemaker
        data = None if document is None else json.dumps(document).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", data=data, timeout=60) as response:
            return json.load(response)

    def ledger(self) -> dict[str, dict[str, Any]]:
        return {row["job_name"]: row for row in self.administer("/_local/ledger")["rows"]}

    def kill_and_restart_sagemaker(self) -> None:
        ports = cloud.require_ports(self.home)
        daemon = self.home.read_daemon(cloud.SAGEMAKER)
        assert daemon is not None
        os.kill(daemon.process_id, signal.SIGKILL)
        cloud.start_sagemaker(self.home, ports, self.options)

    def document(self, *arguments: str) -> Any:
        answer = self.lab.traindyno(*arguments, "--local", "--format", "json")
        assert answer.status == 0, answer.errors
        return answer.json()


@contextmanager
def chaos_lab(folder: Path, traces: dict[str, dict[str, Any]]) -> Iterator[ChaosLab]:
    trace_folder = folder / "traces"
    trace_folder.mkdir()
    for name, trace in traces.items():
        (trace_folder / f"{name}.json").write_text(json.dumps(trace))
    lab = LocalLab(folder)
    options = (*OPTIONS, "--traces", str(trace_folder))
    told: list[str] = []
    try:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in WAIT_SCALE.items():
                patch.setenv(name, value)
            ports = cloud.start(lab.home, tell=told.append, service_options=options)
        deployment.deploy(lab.home, ports, tell=told.append, context=CONTEXT)
        yield ChaosLab(lab, options)
    finally:
        cloud.stop(lab.home)
