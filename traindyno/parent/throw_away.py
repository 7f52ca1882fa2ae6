"""A run of a few steps, of which nothing is kept but its output. Its time belongs to the job.

It is the first run that has not ended, ended after a few steps.
"""

import time
from typing import Container, NamedTuple, Optional

from traindyno.core.jobs.journal_format import THROWN_AWAY, WARM_UP_BEGAN, WARMED_UP
from traindyno.core.search.largest_batch import LONGEST_PROBE_SECONDS
from traindyno.parent.attempt import JobAttempt
from traindyno.parent.disk import remove
from traindyno.parent.document import RunOrder
from traindyno.parent.ends import EndVerdict
from traindyno.parent.journal import has_died_warming_up
from traindyno.parent.output import RunOutput
from traindyno.parent.run_one import FORK, FRESH, Ended, Turn, made_ready, run_one
from traindyno.parent.step_times import RunLogs

RUN_ID = "warm-up"
NO_RUN = "-"


class ThrownAway(NamedTuple):
    """A run whose result is thrown away.

    ``logs`` have the steps of this host's processes.
    """

    ended: Ended
    logs: RunLogs
    seconds: float


def throw_away(run: RunOrder, attempt: JobAttempt, steps: int) -> Optional[ThrownAway]:
    """Runs it until its processes have done ``steps``. None if it can't begin. Raises PeerLost.

    ``run``: with an id of its own, which no run of the job has.
    """
    host = attempt.host
    run_id = run.run_id
    output = RunOutput(host.log(run_id), run_id)
    how = made_ready(run, attempt, output)
    if how not in (FORK, FRESH):
        return None
    folder = attempt.own_folder.with_name(run_id)
    aside = host._replace(aside=folder)
    logs = RunLogs(aside.step_log(run_id) / host.job_name, attempt.peers.count)
    began = time.monotonic()

    def judge() -> Optional[EndVerdict]:
        logs.read_new()
        is_over = logs.step_count >= steps or time.monotonic() >= began + LONGEST_PROBE_SECONDS
        return EndVerdict(reason=THROWN_AWAY) if is_over else None

    turn = Turn(began=began, place=0, is_forked=how == FORK, judge=judge)
    try:
        ended = run_one(run, attempt._replace(host=aside), output, turn)
        logs.read_new()
    finally:
        for written in (folder, host.output(run_id), host.model(run_id)):
            remove(written)
    return ThrownAway(ended, logs, time.monotonic() - began)


def warm_up(attempt: JobAttempt, ended: Container[str]) -> None:
    """Run the throw-away run, if the document asks for it.

    ``ended`` are the runs that ended in earlier attempts. Raises PeerLost.
    """
    peers = attempt.peers
    key = "{}/what".format(RUN_ID)
    if not attempt.job.warm_up_steps:
        return
    if peers.rank == 0:  # the other hosts may have other copies of the files
        left = (run.run_id for run in attempt.job.runs if run.run_id not in ended)
        is_wanted = not attempt.stop.is_made and not has_died_warming_up(
            attempt.host, attempt.job.cut_off
        )
        peers.say(key, next(left, NO_RUN) if is_wanted else NO_RUN)
    named = peers.wait_for(key)
    run = next(
        (run._replace(run_id=RUN_ID) for run in attempt.job.runs if run.run_id == named), None
    )
    if run is None:
        return
    attempt.journal.write(WARM_UP_BEGAN)
    trial = throw_away(run, attempt, attempt.job.warm_up_steps)
    attempt.journal.write(
        WARMED_UP, own_milliseconds=round((trial.seconds if trial else 0.0) * 1e3)
    )
