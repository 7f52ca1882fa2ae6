"""A throw-away run before the first one: what is cold in a new job would otherwise be measured as that run's.

It is the first run that has not ended, ended after a few steps.
"""

from typing import Optional

from traindyno.core.jobs.journal_format import WARM_UP_BEGAN, WARMED_UP
from traindyno.parent.attempt import Attempt
from traindyno.parent.document import RunOrder
from traindyno.parent.ends import has_ended
from traindyno.parent.journal import has_died_warming_up
from traindyno.parent.throw_away import throw_away

RUN_ID = "warm-up"
NO_RUN = "-"


def warm_up(attempt: Attempt) -> None:
    """Nothing, unless the document asks for it. Raises PeerLost."""
    run = _agreed(attempt)
    if run is None:
        return
    attempt.journal.write(WARM_UP_BEGAN)
    found = throw_away(run, attempt, attempt.job.warm_up_steps)
    attempt.journal.write(WARMED_UP, own_milliseconds=round((found.seconds if found else 0.0) * 1e3))


def _agreed(attempt: Attempt) -> Optional[RunOrder]:
    """The first host decides: the others may have other copies of the files."""
    peers, key = attempt.peers, "{}/what".format(RUN_ID)
    if not attempt.job.warm_up_steps:
        return None
    if peers.rank == 0:
        left = (run.run_id for run in attempt.job.runs if not has_ended(attempt.host.folder, run.run_id))
        is_wanted = not attempt.stop.is_made and not has_died_warming_up(attempt.host, attempt.job.cut_off)
        peers.say(key, next(left, NO_RUN) if is_wanted else NO_RUN)
    named = peers.wait_for(key)
    return next((run._replace(run_id=RUN_ID) for run in attempt.job.runs if run.run_id == named), None)
