"""One run on this host, from its begin to the file of its end."""

import json
import os
import signal
import time
from typing import Callable, Dict, NamedTuple, Optional, Tuple

from traindyno.callbacks.failure import count_oom_kills
from traindyno.core.jobs.journal_format import DEVICE_BUSY, EXITED, STOPPED
from traindyno.core.step_log.line import FORKED, PLACE, SHARED_JOB_VARIABLE
from traindyno.parent.attempt import JobAttempt
from traindyno.parent.disk import remove
from traindyno.parent.document import RunOrder
from traindyno.parent.ends import EndVerdict, of_status, of_word
from traindyno.parent.launch import NOT_STARTED, Child, Meeting, Setting, Start
from traindyno.parent.leftovers import remove_shared_memory, shared_memory
from traindyno.parent.output import RunOutput
from traindyno.parent.peers import free_port, master_address
from traindyno.parent.process_tree import descendants, kill_all, send, wait_until_gone
from traindyno.parent.run_environment import arguments_of, run_environment

# Longer than PyTorch's import takes from a cold disk
LONGEST_IMPORT_SECONDS = 300.0
FORK = "fork"
FRESH = "fresh"
POLL_SECONDS = 0.1
SHOW_SECONDS = 1.0
# Workers of data loaders end by themselves after their process.
SETTLE_SECONDS = 1.0
LONGEST_FAILURE = 4000
# A process that ended by SIGTERM may have got it before the parent.
ENDED_BY_STOP = (-signal.SIGTERM, 128 + signal.SIGTERM)


def made_ready(run: RunOrder, attempt: JobAttempt, output: RunOutput) -> str:
    """How all hosts begin the run, or what keeps one of them from it. Raises PeerLost."""
    peers = attempt.peers
    can_fork = make_ready(run, attempt, output)
    is_busy = is_device_busy(attempt)
    states = {STOPPED: attempt.stop.is_made, DEVICE_BUSY: is_busy, FRESH: not can_fork}
    keys = {word: "{}/{}".format(run.run_id, word) for word in states}
    for word in (word for word, holds in states.items() if holds):
        peers.say(keys[word], word)
    peers.barrier("{}/ready".format(run.run_id))
    return next((word for word, key in keys.items() if peers.heard(key) is not None), FORK)


def is_device_busy(attempt: JobAttempt) -> bool:
    """Whether memory of a device is still used by what ran before."""
    if not attempt.devices.is_free:
        attempt.devices.wait_until_free(attempt.peers.beat, attempt.job.device_seconds)
    return not attempt.devices.is_free


def make_ready(run: RunOrder, attempt: JobAttempt, output: RunOutput) -> bool:
    """Whether this host can fork the run. Raises PeerLost."""
    end = time.monotonic() + LONGEST_IMPORT_SECONDS

    def goes_on() -> bool:
        attempt.peers.beat()
        return time.monotonic() < end and not attempt.stop.is_made and not attempt.time_left.is_over

    descriptor = output.open()
    try:
        return attempt.launcher.make_ready(make_setting(run, attempt, descriptor), goes_on)
    except (OSError, ValueError):
        return False
    finally:
        os.close(descriptor)


def make_setting(run: RunOrder, attempt: JobAttempt, descriptor: int) -> Setting:
    """Raises OSError or ValueError."""
    attempt.own_folder.mkdir(parents=True, exist_ok=True)
    environment = run_environment(run, attempt.job, attempt.host, attempt.own_folder)
    return Setting(run=run, program=attempt.job.program, environment=environment, output=descriptor)


class Ended(NamedTuple):
    """What this host knows of a run's end. ``leftovers`` are of processes and shared memory."""

    verdict: EndVerdict
    failure: Optional[str]
    leftovers: Dict[str, int]
    oom_kills: int


class Turn(NamedTuple):
    """Turn of a run within its job.

    ``began`` is on the monotonic clock. ``place`` counts from 1 among the runs that began since the
    parent started. ``was_probed`` says that its probes took some of the job's time. ``judge`` says
    whether the run, while it goes on, is to be ended.
    """

    began: float
    place: int
    is_forked: bool
    judge: Callable[[], Optional[EndVerdict]] = lambda: None
    was_probed: bool = False

    @property
    def has_job_for_itself(self) -> bool:
        return self.place == 1 and not self.was_probed


def run_one(run: RunOrder, attempt: JobAttempt, output: RunOutput, turn: Turn) -> Ended:
    """Raises PeerLost."""
    shared_before = shared_memory(attempt.host.shared_memory)
    kills_before = count_oom_kills()
    try:
        child, problem = _start(run, attempt, output, turn)
        verdict = _watch(run, attempt, child, output, turn)
        processes = _end(child, attempt, verdict)
    finally:
        remove(attempt.own_folder)
    attempt.peers.barrier("{}/over".format(run.run_id))
    output.finish()
    failure = problem or _failure(attempt, verdict, output)
    removed = remove_shared_memory(attempt.host.shared_memory, shared_before)
    leftovers = {"processes": processes, "shared_memory": removed}
    if verdict.left != STOPPED:  # nothing begins after it, and a stopped job has little time
        leftovers["device_mebibytes"] = attempt.devices.wait_until_free(
            attempt.peers.beat, attempt.job.device_seconds
        )
    return Ended(verdict, failure, leftovers, count_oom_kills() - kills_before)


def _start(
    run: RunOrder, attempt: JobAttempt, output: RunOutput, turn: Turn
) -> Tuple[Optional[Child], Optional[str]]:
    """The child, or why there is none."""
    host = attempt.host
    peers = attempt.peers
    name = "{}-{}-{}".format(host.job_name, run.run_id, attempt.number)
    # The first host announces a port of its own, before anything can fail: the other hosts wait for
    # it.
    port = int(peers.first_says("{}/port".format(run.run_id), lambda: str(free_port(host))))
    meeting = Meeting(
        hosts=peers.count, rank=peers.rank, address=master_address(host), port=port, name=name
    )
    descriptor = output.open()
    try:
        for folder in (host.output(run.run_id), host.model(run.run_id)):
            folder.mkdir(parents=True, exist_ok=True)
        setting = make_setting(run, attempt, descriptor)
        setting.environment[SHARED_JOB_VARIABLE] = json.dumps(
            {PLACE: turn.place, FORKED: turn.is_forked}
        )
        start = Start(
            setting=setting,
            arguments=tuple(arguments_of(run, host)),
            meeting=meeting,
            is_forked=turn.is_forked,
        )
        return attempt.launcher.start(start), None
    except (OSError, ValueError) as error:
        return None, "the run's program was not started: {}".format(error)
    finally:
        os.close(descriptor)


def _watch(
    run: RunOrder, attempt: JobAttempt, child: Optional[Child], output: RunOutput, turn: Turn
) -> EndVerdict:
    """The first verdict of any host."""
    peers = attempt.peers
    key = "{}/verdict".format(run.run_id)
    show_at = 0.0
    is_first = turn.has_job_for_itself
    while True:
        peers.beat()
        verdict = _own_verdict(run, attempt, child) or attempt.time_left.verdict(
            turn.began, is_first=is_first
        )
        if verdict is None and child is not None and child.poll() is None:
            verdict = turn.judge()
        word = peers.heard(key) if verdict is None else peers.say(key, verdict.word())
        if word is not None:
            return of_word(word)
        if time.monotonic() >= show_at:
            output.show_new()
            show_at = time.monotonic() + SHOW_SECONDS
        time.sleep(POLL_SECONDS)


def _own_verdict(
    run: RunOrder, attempt: JobAttempt, child: Optional[Child]
) -> Optional[EndVerdict]:
    """A run that fails when the job is stopped was stopped: its processes may get the same
    signal.
    """
    status = NOT_STARTED if child is None else child.poll()
    if status == 0:
        keys = ["{}/completed/{}".format(run.run_id, rank) for rank in range(attempt.peers.count)]
        own = keys[attempt.host.rank]
        if attempt.peers.heard(own) is None:
            attempt.peers.say(own, "0")
        if all(attempt.peers.heard(key) is not None for key in keys):
            return EndVerdict(reason=EXITED, exit_code=0)
    if status in ENDED_BY_STOP:
        time.sleep(SETTLE_SECONDS)
    if attempt.stop.is_made:
        return EndVerdict(left=STOPPED)
    return of_status(status, attempt.host.name) if status else None


def _end(child: Optional[Child], attempt: JobAttempt, verdict: EndVerdict) -> int:
    """End the processes that came from the run. Return how many were left by themselves."""
    kept = attempt.launcher.kept
    beat = attempt.peers.beat
    if verdict.is_at_once:
        kill_all(kept, beat)
    if child is not None and child.poll() is None:
        send(child.first, signal.SIGTERM)
        grace = attempt.job.grace_seconds * (3 if verdict.left == STOPPED else 1)
        end = time.monotonic() + grace
        while child.poll() is None and time.monotonic() < end:
            beat()
            time.sleep(POLL_SECONDS)
    wait_until_gone(SETTLE_SECONDS, kept, beat)
    left = len(descendants(kept))
    kill_all(kept, beat)
    if child is not None:
        child.poll()
    return left


def _failure(attempt: JobAttempt, verdict: EndVerdict, output: RunOutput) -> Optional[str]:
    """Text that the run wrote about its failure, or else the end of its output."""
    path = attempt.host.failure
    try:
        written = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        written = ""
    remove(path)
    if not verdict.has_failed:
        return None
    return (written or output.last_text())[-LONGEST_FAILURE:] or None
