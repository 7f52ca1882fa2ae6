"""A throw-away run before the first one: what is cold in a new job would otherwise be measured as that run's.

It is the first run that has not ended, ended after a few steps. Its time belongs to the job, and nothing of it is kept
but its output.
"""

import time
from typing import Callable, Optional

from traindyno.core.jobs.journal_format import WARM_UP_BEGAN, WARMED_UP
from traindyno.parent.attempt import Attempt
from traindyno.parent.disk import remove
from traindyno.parent.document import RunOrder
from traindyno.parent.ends import has_ended
from traindyno.parent.host import Host
from traindyno.parent.journal import has_died_warming_up
from traindyno.parent.output import RunOutput
from traindyno.parent.ready import FORK, FRESH, made_ready
from traindyno.parent.run_one import Turn, run_one
from traindyno.parent.step_times import RunLogs
from traindyno.parent.verdicts import Verdict

RUN_ID = "warm-up"
NO_RUN = "-"
# For a script that logs no steps
LONGEST_SECONDS = 600.0


def warm_up(attempt: Attempt) -> None:
    """Nothing, unless the document asks for it. Raises PeerLost."""
    run = _agreed(attempt)
    if run is None:
        return
    host, output = attempt.host, RunOutput(attempt.host.log(RUN_ID), RUN_ID)
    how = made_ready(run, attempt, output)
    if how not in (FORK, FRESH):
        return  # the first run finds the same
    folder = attempt.own_folder.with_name(RUN_ID)
    aside = host._replace(aside=folder)
    began = time.monotonic()
    attempt.journal.write(WARM_UP_BEGAN)
    turn = Turn(began=began, place=0, is_forked=how == FORK, judge=_judge(attempt, aside))
    try:
        run_one(run, attempt._replace(host=aside), output, turn)
    finally:
        for written in (folder, host.output(RUN_ID), host.model(RUN_ID)):
            remove(written)
    attempt.journal.write(WARMED_UP, own_milliseconds=round((time.monotonic() - began) * 1e3))


def _agreed(attempt: Attempt) -> Optional[RunOrder]:
    """The first host decides: the others may have other copies of the files."""
    peers, key = attempt.peers, "{}/what".format(RUN_ID)
    if not attempt.job.warm_up_steps:
        return None
    if peers.rank == 0:
        left = (run.run_id for run in attempt.job.runs if not has_ended(attempt.host.folder, run.run_id))
        is_wanted = not attempt.stop.is_made and not has_died_warming_up(attempt.host)
        peers.say(key, next(left, NO_RUN) if is_wanted else NO_RUN)
    named = peers.wait_for(key)
    return next((run._replace(run_id=RUN_ID) for run in attempt.job.runs if run.run_id == named), None)


def _judge(attempt: Attempt, host: Host) -> Callable[[], Optional[Verdict]]:
    logs = RunLogs(host.step_log(RUN_ID) / host.job_name, attempt.peers.count)
    end = time.monotonic() + LONGEST_SECONDS

    def judge() -> Optional[Verdict]:
        logs.read_new()
        is_over = logs.step_count >= attempt.job.warm_up_steps or time.monotonic() >= end
        return Verdict(reason=WARMED_UP) if is_over else None

    return judge
