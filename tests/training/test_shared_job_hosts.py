"""The parents of a job's hosts begin and end each run together."""

import json
import os
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from localcloud.ports import free_port
from localcloud.sagemaker_service.host import loopback_torchrun
from tests.unit.parent import shared_job
from tests.unit.parent.shared_job import SharedJob, children_of, is_alive, run_document, wait_until

pytestmark = pytest.mark.nightly

HOSTS = ("algo-1", "algo-2")
RUNS = [
    run_document("fails-on-one", "--exit-on-host", "algo-2", "--sleep", "600"),
    run_document("has-no-folder"),
    run_document("together", "--all-reduce", "1", launcher="torchrun", processes_per_host=1),
    run_document("loses-a-host", "--sleep", "600"),
]
# One host could fork at once; the other says later that it can't.
FORKING = """
import os, sys, time
answers = int(sys.argv[1])
if os.environ["SM_CURRENT_HOST"] == "algo-2":
    time.sleep(1)
    open("imported", "w").write(str(time.time()))
    os.write(answers, b"it has opened a device\\n")
else:
    os.write(answers, b"ready\\n")
sys.stdin.readline()
"""


def two_hosts(root: Path, runs: Sequence[Mapping[str, Any]], *programs: Path) -> SharedJob:
    environment = {
        "TRAINDYNO_MASTER_ADDRESS": "127.0.0.1",
        "TRAINDYNO_MASTER_PORT": str(free_port()),
        "TRAINDYNO_TORCHRUN": str(Path(loopback_torchrun.__file__)),
        "SM_NETWORK_INTERFACE_NAME": "lo",
        "OMP_NUM_THREADS": "1",
    }
    job = SharedJob(
        root=root, runs=runs, hosts=HOSTS, environment=environment, limits={"lease_seconds": 20}
    )
    return replace(job, programs=programs) if programs else job


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedJob]:
    """Two hosts on this machine. While the last run is in progress, one host's parent is killed."""
    root = tmp_path_factory.mktemp("job")
    outputs = root / HOSTS[0] / "output" / "data"
    outputs.mkdir(parents=True)
    (outputs / "has-no-folder").write_text("a file where the run's output would be")
    job = two_hosts(root, RUNS)
    with job.start(host="algo-1") as first, job.start(host="algo-2") as second:
        wait_until(
            lambda: (
                second.poll() is not None
                or all("sleeps" in job.log("loses-a-host", host=h) for h in HOSTS)
            )
        )
        kept = children_of(children_of(first.pid)[0])
        os.kill(children_of(second.pid)[0], signal.SIGKILL)
        assert second.wait(60) == 128 + signal.SIGKILL
        assert first.wait(60) == 1
        assert not any(map(is_alive, kept))
    yield job


def test_a_hopeless_run_ends_on_all_hosts_and_a_throw_away_run_too(tmp_path: Path) -> None:
    given = [{"seconds": 0.1}, {"seconds": 0.2, "waits": 60}]
    runs = [
        run_document(name, json.dumps(environment), launcher="torchrun", processes_per_host=1)
        for name, environment in zip("ab", given, strict=True)
    ]
    racing = two_hosts(tmp_path, runs, Path(shared_job.__file__).with_name("racing.py"))
    again = [{**run, "run_id": f"{run['run_id']}-t2", "first": run["run_id"]} for run in runs]
    limits = {**racing.limits, "race": {"samples": 1e6}, "warm_up_steps": 7, "again": again}
    job = replace(racing, limits=limits)
    with job.start(host="algo-1") as first, job.start(host="algo-2") as second:
        assert [parent.wait(120) for parent in (first, second)] == [0, 0]
    for host in HOSTS:
        assert [event for event, *_ in job.events(host=host)][:3] == [
            "parent_started",
            "warm_up_began",
            "warmed_up",
        ]
        reasons = [
            (job.end(name, host=host) or {}).get("reason") for name in ("a", "b", "a-t2", "b-t2")
        ]
        assert reasons == ["exited", "outpaced", "exited", None]
    bounds = [(job.end("b", host=host) or {})["bound"] for host in HOSTS]
    assert bounds[0] == bounds[1]


def test_hosts_with_other_remembered_probes_go_on_with_those_of_the_first(tmp_path: Path) -> None:
    """The second host has fewer probes of an earlier job, and other rates."""
    order = {"choice": "best", "first": 4, "step": 1, "path": ["batch"]}
    run = run_document(
        "a", "--batch", "1", "--room", "9", hyperparameters={"batch": 1}, batch=order
    )
    job = two_hosts(tmp_path, [run], Path(shared_job.__file__).with_name("filling.py"))
    probes = [
        (4, True, 10.0),
        (8, True, 14.0),
        (16, False, None),
        (12, False, None),
        (10, False, None),
    ]
    earlier: list[list[tuple[int, bool, float | None]]] = [[*probes], [(4, True, 1e9)]]
    for host, remembered in zip(HOSTS, earlier, strict=True):
        path = job.folder(host) / "journal" / "job-a0" / f"{host}.jsonl"
        path.parent.mkdir(parents=True)
        lines = (
            {
                "event": "probed",
                "run_id": "a",
                "batch": batch,
                "fits": fits,
                "samples_per_second": rate,
            }
            for batch, fits, rate in remembered
        )
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with job.start(host="algo-1") as first, job.start(host="algo-2") as second:
        try:
            assert [parent.wait(60) for parent in (first, second)] == [0, 0]
        finally:
            first.kill()
            second.kill()
    batches = [(job.end("a", host=host) or {})["batch"] for host in HOSTS]
    assert batches[0] == batches[1]
    assert (batches[0]["batch"], [probe["batch"] for probe in batches[0]["probes"]]) == (
        9,
        [4, 8, 16, 12, 10, 9],
    )


def test_a_process_failing_on_one_host_ends_the_run_on_all(job: SharedJob) -> None:
    for host in HOSTS:
        end = job.end("fails-on-one", host=host)
        assert end is not None
        assert (end["reason"], end["exit_code"], end["failed_host"]) == ("exited", 5, "algo-2")
        assert end["hosts"] == list(HOSTS)


def test_a_run_with_no_start_on_the_first_host_ends_on_all(job: SharedJob) -> None:
    for host in HOSTS:
        end = job.end("has-no-folder", host=host) or {}
        assert (end["exit_code"], end["failed_host"]) == (127, HOSTS[0])
    assert (job.end("has-no-folder") or {})["failure"].startswith(
        "the run's program was not started"
    )


def test_the_next_run_meets_on_all_hosts(job: SharedJob) -> None:
    for rank, host in enumerate(HOSTS):
        assert (job.end("together", host=host) or {})["exit_code"] == 0
        log = job.folder(host) / "together" / "step_log" / "job-a1" / f"rank-{rank}.jsonl"
        assert log.read_text().splitlines() == ["began", "sum 3 of 2"]


def test_the_parent_with_a_lost_peer_leaves_the_run_and_ends(job: SharedJob) -> None:
    assert job.events()[-1] == ("run_left", "loses-a-host", "peer_lost")
    assert [job.end("loses-a-host", host=host) for host in HOSTS] == [None, None]


def test_all_hosts_wait_for_imports_and_fork_only_together(job: SharedJob, tmp_path: Path) -> None:
    train = tmp_path / "traindyno_train.py"
    ranks = tmp_path / "traindyno_ranks.py"
    shutil.copy(job.programs[0], train)
    ranks.write_text(FORKING)
    waits = two_hosts(tmp_path, [run_document("a", "--shared-job", "")], train, ranks)
    with waits.start(host="algo-1") as first, waits.start(host="algo-2") as second:
        assert [first.wait(60), second.wait(60)] == [0, 0]
    imported = float((tmp_path / "code" / "imported").read_text())
    for host in HOSTS:
        (began,) = (line for line in waits.journal(host=host) if line["event"] == "run_began")
        assert began["time"] >= imported
        assert waits.log("a", host=host) == ["began", '{"place": 1, "forked": false}']
