"""Finds the batch of a run before it begins: each probe is a throw-away run of a few steps with a
batch of its own.
"""

import json
import signal
from dataclasses import asdict
from itertools import count
from statistics import median
from typing import Any, Dict, NamedTuple, Optional, Sequence

from traindyno.callbacks.failure import OUT_OF_MEMORY, OUT_OF_MEMORY_SIGNS
from traindyno.core.jobs.journal_format import EXITED, PROBE_BEGAN, PROBED, THROWN_AWAY
from traindyno.core.search.largest_batch import (
    MOST_TIMES,
    PROBE_STEPS,
    PROBE_WARM_UP_STEPS,
    Probe,
    chosen,
    has_room,
    least_failing,
    next_batch,
)
from traindyno.parent.attempt import JobAttempt
from traindyno.parent.document import RunOrder
from traindyno.parent.journal import probes_before
from traindyno.parent.output import say
from traindyno.parent.run_one import Ended
from traindyno.parent.step_times import RunLogs
from traindyno.parent.throw_away import ThrownAway, throw_away

PROBE_ID = "{}-batch-{}"
KILLED = (-signal.SIGKILL, 128 + signal.SIGKILL)
MEMORY_SIGNS = (OUT_OF_MEMORY, "outofmemoryerror", "memoryerror", *OUT_OF_MEMORY_SIGNS)
UNKNOWN = "unknown"
FITS = "fits"
TOO_LARGE = "too large"

Finding = Dict[str, Any]


class Searched(NamedTuple):
    """Result of a batch search.

    ``run`` has its batch. ``finding`` is what the probes showed; None where no batch is searched.
    ``answers`` counts the probes of this attempt that told whether their batch fits. ``has_probed``
    says whether one began.
    """

    run: RunOrder
    finding: Optional[Finding]
    answers: int
    has_probed: bool


def find_batch(run: RunOrder, attempt: JobAttempt) -> Searched:
    """The first host decides: only it reads the journals of earlier attempts, and the rates.

    A probe that ends for another reason than its memory ends the search: without a batch that fits,
    the run then ends for the same reason, if it is one of its own. Raises PeerLost.
    """
    order = run.batch
    if order is None:
        return Searched(run, None, 0, has_probed=False)
    peers = attempt.peers
    probes = probes_before(attempt.host, run.run_id, attempt.job.cut_off) if peers.rank == 0 else []
    possible = order.possible or range(
        order.step, MOST_TIMES * max(order.step, order.first) + 1, order.step
    )
    at = least_failing(probes) or order.first
    has_probed = False
    for answers in count():
        key = "{}/batch/{}".format(run.run_id, answers)
        batch = int(
            peers.first_says(key, lambda: str(next_batch(probes, order.first, possible) or 0))
        )
        probe = _probe(run, batch, attempt) if batch else None
        at = batch or at
        has_probed = has_probed or bool(batch)
        if probe is None:
            break
        probes.append(probe)
    chosen_batch = chosen(probes, order.choice) or at
    own = {"batch": chosen_batch, "probes": [asdict(probe) for probe in probes]}
    finding = json.loads(peers.first_says("{}/batch".format(run.run_id), lambda: json.dumps(own)))
    say("{}: batch {batch} of {} probes".format(run.run_id, len(finding["probes"]), **finding))
    return Searched(with_batch(run, finding["batch"]), finding, answers, has_probed)


def with_batch(run: RunOrder, batch: int) -> RunOrder:
    """A script has its batch among its arguments too."""
    assert run.batch is not None
    path = run.batch.path
    arguments = list(run.arguments)
    for place, text in enumerate(arguments[:-1]):
        if len(path) == 1 and text in ("--" + path[0], "-" + path[0]):
            arguments[place + 1] = str(batch)
    hyperparameters = _with_value(run.hyperparameters, path, batch)
    return run._replace(hyperparameters=hyperparameters, arguments=tuple(arguments), batch=None)


def _with_value(values: Dict[str, Any], path: Sequence[str], value: Any) -> Dict[str, Any]:
    name = path[0]
    rest = path[1:]
    return {**values, name: _with_value(values[name], rest, value) if rest else value}


def _probe(run: RunOrder, batch: int, attempt: JobAttempt) -> Optional[Probe]:
    """The probe of a batch; None if it does not tell whether the batch fits."""
    attempt.journal.write(PROBE_BEGAN, run_id=run.run_id, batch=batch)
    probed = with_batch(run, batch)._replace(run_id=PROBE_ID.format(run.run_id, batch))
    trial = throw_away(probed, attempt, PROBE_STEPS)
    told = _agreed_end(probed, attempt, trial)
    own_retries = 0 if trial is None else trial.logs.allocator_retries
    retries = int(
        attempt.peers.first_says("{}/retries".format(probed.run_id), lambda: str(own_retries))
    )
    fits = has_room(told == FITS, retries)
    rate = _samples_per_second(trial.logs) if trial is not None and fits else None
    peak = None if trial is None else trial.logs.peak_bytes
    probe = None if told == UNKNOWN else Probe(batch, fits, peak, rate, retries)
    seconds = trial.seconds if trial else 0.0
    about = {} if probe is None else asdict(probe)
    attempt.journal.write(
        PROBED,
        run_id=run.run_id,
        own_milliseconds=round(seconds * 1e3),
        **{"batch": batch, **about},
    )
    return probe


def _agreed_end(run: RunOrder, attempt: JobAttempt, trial: Optional[ThrownAway]) -> str:
    """A host on which the memory was too small says so: the others see only that a process
    elsewhere ended. Without one, the first host decides.
    """
    peers = attempt.peers
    key = "{}/too-large".format(run.run_id)
    if trial is not None and _is_too_large(trial.ended):
        peers.say(key, TOO_LARGE)
    peers.barrier("{}/over-or-too-large".format(run.run_id))
    if peers.heard(key) is not None:
        return TOO_LARGE
    has_worked = False
    if trial is not None:
        verdict = trial.ended.verdict
        is_done = verdict.reason == THROWN_AWAY or (
            verdict.reason == EXITED and not verdict.has_failed
        )
        # Steps are its proof: a script that logs none is thrown away by the clock.
        has_worked = is_done and trial.logs.step_count > 0
    return peers.first_says("{}/told".format(run.run_id), lambda: FITS if has_worked else UNKNOWN)


def _is_too_large(ended: Ended) -> bool:
    verdict = ended.verdict
    if verdict.reason != EXITED or not verdict.has_failed:
        return False
    status = verdict.exit_code if verdict.signal is None else -verdict.signal
    if status in KILLED and ended.oom_kills:
        return True
    failure = (ended.failure or "").lower()
    return any(sign in failure for sign in MEMORY_SIGNS)


def _samples_per_second(logs: RunLogs) -> Optional[float]:
    steps = logs.steps()
    if steps is None:
        return None
    seconds = median(steps.seconds[PROBE_WARM_UP_STEPS:] or steps.seconds)
    return steps.samples / seconds if seconds > 0 else None
