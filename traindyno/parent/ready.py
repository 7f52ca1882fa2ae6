"""What a run needs before it begins: the imports of the process that forks it belong to the job's start."""

import os
import time

from traindyno.core.jobs.journal_format import DEVICE_BUSY, STOPPED
from traindyno.parent.attempt import Attempt
from traindyno.parent.document import RunOrder
from traindyno.parent.launch import Setting
from traindyno.parent.output import RunOutput
from traindyno.parent.run_environment import run_environment

# Longer than PyTorch's import takes from a cold disk
LONGEST_IMPORT_SECONDS = 300.0
FORK, FRESH = "fork", "fresh"


def made_ready(run: RunOrder, attempt: Attempt, output: RunOutput) -> str:
    """How all hosts begin the run, or what keeps one of them from it. Raises PeerLost."""
    peers = attempt.peers
    can_fork, is_busy = make_ready(run, attempt, output), is_device_busy(attempt)
    found = {STOPPED: attempt.stop.is_made, DEVICE_BUSY: is_busy, FRESH: not can_fork}
    keys = {word: "{}/{}".format(run.run_id, word) for word in found}
    for word in (word for word, holds in found.items() if holds):
        peers.say(keys[word], word)
    peers.barrier("{}/ready".format(run.run_id))
    return next((word for word, key in keys.items() if peers.heard(key) is not None), FORK)


def is_device_busy(attempt: Attempt) -> bool:
    """Whether memory of a device is still used by what ran before."""
    if not attempt.devices.is_free:
        attempt.devices.wait_until_free(attempt.peers.beat, attempt.job.device_seconds)
    return not attempt.devices.is_free


def make_ready(run: RunOrder, attempt: Attempt, output: RunOutput) -> bool:
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


def make_setting(run: RunOrder, attempt: Attempt, descriptor: int) -> Setting:
    """Raises OSError or ValueError."""
    attempt.own_folder.mkdir(parents=True, exist_ok=True)
    environment = run_environment(run, attempt.job, attempt.host, attempt.own_folder)
    return Setting(run=run, program=attempt.job.program, environment=environment, output=descriptor)
