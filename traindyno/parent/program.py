"""Entry point of a shared job: on each instance it runs the runs of the job's document, one after
another.
"""

import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import Callable

from traindyno.core.jobs.journal_format import (
    FORMAT_VERSION,
    MARK_VARIABLE,
    PARENT_STARTED,
    STOPPED,
)
from traindyno.parent.attempt import EXIT_CODE, JobAttempt, StopSignal, TimeLeft, job_began_at
from traindyno.parent.conduct import Conductor
from traindyno.parent.disk import remove
from traindyno.parent.document import (
    DocumentRefused,
    JobOrder,
    find_document,
    read_document,
    with_own_devices,
)
from traindyno.parent.forking import ForkingLauncher
from traindyno.parent.host import Host, this_host
from traindyno.parent.journal import Journal
from traindyno.parent.leftovers import Devices
from traindyno.parent.output import say
from traindyno.parent.peers import PeerLost, meet
from traindyno.parent.process_tree import adopt_orphans, end_with_parent, kill_all, marked, send

FAILED = 1


def under_guard(work: Callable[[], int]) -> int:
    """The exit code of ``work``, which runs in a child of this process.

    If this process is killed, the child gets SIGTERM.
    """
    adopt_orphans()
    guard = os.getpid()
    child = os.fork()
    if not child:
        end_with_parent(signal.SIGTERM)
        if os.getppid() != guard:
            os._exit(1)
        _work(work)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: os.kill(child, number))
    _, status = os.waitpid(child, os.WUNTRACED)
    while os.WIFSTOPPED(
        status
    ):  # a run can send its parent SIGSTOP, and a stopped parent holds the machine
        os.kill(child, signal.SIGCONT)
        _, status = os.waitpid(child, os.WUNTRACED)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    kill_all()
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _work(work: Callable[[], int]) -> None:
    code = 1
    try:
        code = work()
    except BaseException:  # noqa: BLE001 -- the process ends here, with its text, whatever it was
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                continue
        os._exit(code)


def main() -> None:
    """If guard and parent are killed, the folder ends with the container; the local cloud removes
    it with the job's temporary files.
    """
    own_folder = Path(tempfile.mkdtemp(prefix="r-"))
    code = under_guard(lambda: work(own_folder))
    remove(own_folder)
    sys.exit(code)


def work(own_folder: Path) -> int:
    """The exit code: 0 once every run has its end, or is left because the job has no time for
    it.
    """
    adopt_orphans()
    stop = StopSignal()
    stop.listen()
    host = this_host()
    try:
        document = read_document(Path(host.localised(str(find_document(host.environment)))))
    except DocumentRefused as refused:
        sys.stderr.write("{}\n".format(refused))
        try:
            host.failure.parent.mkdir(parents=True, exist_ok=True)
            host.failure.write_text(str(refused), encoding="utf-8")
        except OSError as error:
            sys.stderr.write("{} could not be written: {}\n".format(host.failure, error))
        return FAILED
    job = with_own_devices(document, host.environment)
    send(marked("{}={}".format(MARK_VARIABLE, host.mark)), signal.SIGKILL)
    journal = Journal(host)
    runs = [run.run_id for run in job.runs]
    journal.write(
        PARENT_STARTED,
        version=FORMAT_VERSION,
        job_id=job.job_id,
        host=host.name,
        hosts=list(host.hosts),
        runs=runs,
    )
    try:
        return _conduct(job, host, journal=journal, stop=stop, own_folder=own_folder)
    except PeerLost as lost:
        say("this host ends: {}".format(lost))
        return FAILED
    finally:
        kill_all()
        remove(own_folder)


def _conduct(
    job: JobOrder, host: Host, *, journal: Journal, stop: StopSignal, own_folder: Path
) -> int:
    peers = meet(host, job.lease_seconds)
    attempt = JobAttempt(
        number=peers.first_says("number", lambda: str(time.time_ns())),
        job=job,
        host=host,
        peers=peers,
        journal=journal,
        # On a machine with other users, who uses a device's memory is unknown.
        devices=Devices() if host.is_alone else Devices(""),
        launcher=ForkingLauncher(),
        stop=stop,
        time_left=TimeLeft(job, job_began_at(host)),
        own_folder=own_folder / "run",  # only this user can make it again
    )
    conductor = Conductor(attempt)
    conductor.conduct()
    return EXIT_CODE if conductor.left_because == STOPPED else 0


if __name__ == "__main__":
    main()
