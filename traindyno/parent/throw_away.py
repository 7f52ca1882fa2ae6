"""A run of a few steps, of which nothing is kept but its output. Its time belongs to the job."""

import time
from typing import NamedTuple, Optional

from traindyno.core.jobs.journal_format import THROWN_AWAY
from traindyno.core.search.largest_batch import LONGEST_PROBE_SECONDS
from traindyno.parent.attempt import Attempt
from traindyno.parent.disk import remove
from traindyno.parent.document import RunOrder
from traindyno.parent.output import RunOutput
from traindyno.parent.ready import FORK, FRESH, made_ready
from traindyno.parent.run_one import Ended, Turn, run_one
from traindyno.parent.step_times import RunLogs
from traindyno.parent.verdicts import Verdict


class ThrownAway(NamedTuple):
    """``logs`` have the steps of this host's processes."""

    ended: Ended
    logs: RunLogs
    seconds: float


def throw_away(run: RunOrder, attempt: Attempt, steps: int) -> Optional[ThrownAway]:
    """Runs it until its processes have done ``steps``. None if it can't begin. Raises PeerLost.

    ``run``: with an id of its own, which no run of the job has.
    """
    host, run_id = attempt.host, run.run_id
    output = RunOutput(host.log(run_id), run_id)
    how = made_ready(run, attempt, output)
    if how not in (FORK, FRESH):
        return None
    folder = attempt.own_folder.with_name(run_id)
    aside = host._replace(aside=folder)
    logs = RunLogs(aside.step_log(run_id) / host.job_name, attempt.peers.count)
    began = time.monotonic()

    def judge() -> Optional[Verdict]:
        logs.read_new()
        is_over = logs.step_count >= steps or time.monotonic() >= began + LONGEST_PROBE_SECONDS
        return Verdict(reason=THROWN_AWAY) if is_over else None

    turn = Turn(began=began, place=0, is_forked=how == FORK, judge=judge)
    try:
        ended = run_one(run, attempt._replace(host=aside), output, turn)
        logs.read_new()
    finally:
        for written in (folder, host.output(run_id), host.model(run_id)):
            remove(written)
    return ThrownAway(ended, logs, time.monotonic() - began)
