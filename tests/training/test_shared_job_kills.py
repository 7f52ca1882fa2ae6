"""Each process of a shared job is killed in each phase: the others' runs end as if nothing had
been, and once.

The runs load data and reduce over two real processes, and wait where the test kills.
"""

import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from localcloud.ports import free_port
from localcloud.sagemaker_service.host import loopback_torchrun
from tests.training.jobs import REPO_ROOT
from tests.unit.parent.shared_job import SharedJob, children_of, is_alive, run_document, wait_until
from traindyno.core.jobs.journal_format import STATE
from traindyno.parent.ends import whole_ends

pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]
HOST = "algo-1"
MANY_FILES = 40_000
STEPS = 6
HELD_STEP = 3
RUNS = ("before", "struck", "after")
# The second run is held in one of these phases, or the job is between two phases that the journal
# shows.
START = "start"
STEPPING = "steps"
END = "end"
IMPORTING = "importing"
BETWEEN = "between"
ENDED = "ended"
HELD = (START, STEPPING, END)
JOB_PHASES = (IMPORTING, BETWEEN, ENDED)
OF_JOB = ("guard", "parent")
PROGRAM = f"""
import os, time
from pathlib import Path

import torch
from torch import distributed
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        return torch.tensor([float(index)])


def main():
    log = Path(os.environ["TRAINDYNO_STEP_LOG_DIRECTORY"])
    control, run_id = Path(os.environ["CONTROL"]), log.parent.name
    log = log / os.environ["TRAINING_JOB_NAME"] / ("rank-" + os.environ["RANK"] + ".jsonl")

    def hold(phase):
        asked = control / f"{{run_id}}-{{phase}}"
        if asked.exists():
            (control / ("held-" + os.environ["RANK"])).touch()
        while asked.exists():
            time.sleep(0.01)

    hold("{START}")
    distributed.init_process_group("gloo")
    batches = iter(DataLoader(Numbers(), num_workers=1))
    log.parent.mkdir(parents=True, exist_ok=True)
    for step in range({STEPS}):
        batch = next(batches)
        distributed.all_reduce(batch)
        with log.open("a") as file:
            file.write(f"{{batch.item()}}\\n")
        if step == {HELD_STEP}:
            hold("{STEPPING}")
    hold("{END}")
    distributed.destroy_process_group()
"""
STARTED = "from training.main import main\n\nmain()\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    victim: str
    phase: str
    is_forked: bool = True

    def __str__(self) -> str:
        return f"{self.victim}-{self.phase}{'' if self.is_forked else '-fresh'}"


def every_kill() -> Iterator[Kill]:
    for phase in JOB_PHASES:
        yield from (Kill(victim=victim, phase=phase) for victim in (*OF_JOB, "source"))
    for phase in HELD:
        yield from (
            Kill(victim=victim, phase=phase) for victim in (*OF_JOB, "source", "launcher", "rank")
        )
        yield from (
            Kill(victim=victim, phase=phase, is_forked=False)
            for victim in (*OF_JOB, "torchrun", "rank")
        )
    for phase in (STEPPING, END):
        yield from (
            Kill(victim="loader", phase=phase, is_forked=is_forked) for is_forked in (True, False)
        )


@pytest.mark.parametrize("kill", every_kill(), ids=str)
def test_a_killed_process_costs_its_run_or_its_job_the_work_in_progress(
    kill: Kill, tmp_path: Path
) -> None:
    job = job_of(tmp_path, kill)
    with job.start() as guard:
        reach(job, kill, guard.pid)
        family = {guard.pid, *descendants(guard.pid)}
        os.kill(victim_of(kill, guard.pid), signal.SIGKILL)
        release(job)
        output, _ = guard.communicate(timeout=120)
    wait_until(lambda: not any(map(is_alive, family)))
    job_died = kill.victim in OF_JOB
    assert (guard.returncode != 0) == job_died, output
    if job_died:
        assert job.carry("job-a2")[0] == 0
    check_ends(job, kill, jobs=["job-a1", *(["job-a2"] if job_died else [])])


def job_of(root: Path, kill: Kill) -> SharedJob:
    control = root / "control"
    package = root / "code" / "training"
    programs = root / "programs"
    for folder in (control, package, programs):
        folder.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "main.py").write_text(PROGRAM)
    (programs / "traindyno_train.py").write_text(STARTED)
    if kill.phase in HELD:
        (control / f"{RUNS[1]}-{kill.phase}").touch()
    if kill.phase == ENDED:
        fill_checkpoints(root)
    environment = {
        "CONTROL": str(control),
        "TRAINDYNO_MASTER_ADDRESS": "127.0.0.1",
        "TRAINDYNO_MASTER_PORT": str(free_port()),
        "TRAINDYNO_TORCHRUN": str(Path(loopback_torchrun.__file__)),
        "GLOO_SOCKET_IFNAME": "lo",
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }
    forking = [REPO_ROOT / "training" / "entry" / "traindyno_ranks.py"] if kill.is_forked else []
    return SharedJob(
        root=root,
        runs=[run(run_id, kill) for run_id in RUNS],
        programs=(programs / "traindyno_train.py", *forking),
        environment=environment,
    )


def fill_checkpoints(root: Path) -> None:
    """After the end of its last run the job removes these for long enough to be killed
    meanwhile.
    """
    folder = root / HOST / "checkpoints" / RUNS[-1] / STATE
    folder.mkdir(parents=True)
    for number in range(MANY_FILES):
        (folder / str(number)).touch()


def run(run_id: str, kill: Kill) -> dict[str, Any]:
    """Another variable that libraries read at their import makes the job wait for imports between
    two runs.
    """
    other = {"MKL_NUM_THREADS": "1"} if kill.phase == BETWEEN and run_id == RUNS[1] else {}
    return run_document(run_id, launcher="torchrun", processes_per_host=2, environment=other)


def reach(job: SharedJob, kill: Kill, guard: int) -> None:
    """Waits until the job is in the phase, and the victim is there."""
    if kill.phase in HELD:
        wait_until(lambda: len(list((job.root / "control").glob("held-*"))) == 2)
    elif kill.phase == BETWEEN:
        wait_until(
            lambda: ("run_ended", RUNS[0], "exited") in job.events() and len(sources(guard)) == 2
        )
    elif kill.phase == ENDED:
        wait_until(lambda: job.end(RUNS[-1]))
    wait_until(lambda: victim_of(kill, guard))


def release(job: SharedJob) -> None:
    for asked in (job.root / "control").glob(f"{RUNS[1]}-*"):
        asked.unlink()


def victim_of(kill: Kill, guard: int) -> int:
    """0 if there is no such process yet."""
    parent = next(iter(children(guard)), 0)
    processes = {"guard": [guard], "parent": [parent], "source": sources(guard)}
    launchers = children(processes["source"][-1]) if kill.is_forked and processes["source"] else []
    launchers = launchers or [
        child for child in children(parent) if child not in processes["source"]
    ]
    ranks = [
        rank
        for launcher in launchers
        for rank in children(launcher)
        if b"resource_tracker" not in command_line(rank)
    ]
    processes |= {"launcher": launchers, "torchrun": launchers, "rank": ranks}
    processes["loader"] = [worker for rank in ranks for worker in children(rank)]
    return processes[kill.victim][-1] if processes[kill.victim] else 0


def sources(guard: int) -> list[int]:
    return [
        child
        for parent in children(guard)
        for child in children(parent)
        if b"traindyno_ranks" in command_line(child)
    ]


def children(process_id: int) -> list[int]:
    with suppress(OSError):
        return [child for child in children_of(process_id) if is_alive(child)] if process_id else []
    return []


def descendants(process_id: int) -> set[int]:
    own = children(process_id)
    return {*own, *(descendant for child in own for descendant in descendants(child))}


def command_line(process_id: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process_id}/cmdline").read_bytes()
    return b""


def check_ends(job: SharedJob, kill: Kill, *, jobs: list[str]) -> None:
    """Each run has ended once, with what its files say, and only what was in progress was begun
    again.
    """
    ends = {run_id: [end for name in jobs if (end := job.end(run_id, name))] for run_id in RUNS}
    assert {run_id: len(ended) for run_id, ended in ends.items()} == dict.fromkeys(RUNS, 1)
    assert all(any(whole_ends(job.folder(), run_id)) for run_id in RUNS)
    fails = kill.phase in HELD and kill.victim not in OF_JOB
    completed = {
        run_id: (ended[0]["reason"], ended[0]["exit_code"]) == ("exited", 0)
        for run_id, ended in ends.items()
    }
    # A loader's worker that dies after the last step may be noticed, or not.
    struck = completed[RUNS[1]] if (kill.victim, kill.phase) == ("loader", END) else not fails
    assert completed == {**dict.fromkeys(RUNS, True), RUNS[1]: struck}
    begun = [
        run_id for name in jobs for event, run_id, _ in job.events(name) if event == "run_began"
    ]
    repeated = [RUNS[1]] if kill.phase in HELD and kill.victim in OF_JOB else []
    assert Counter(begun) == Counter([*RUNS, *repeated])
    for run_id, (end,) in ends.items():
        for rank in (0, 1) if completed[run_id] else ():
            log = job.folder() / run_id / "step_log" / end["job_name"] / f"rank-{rank}.jsonl"
            assert log.read_text().split() == [str(2.0 * step) for step in range(STEPS)]
