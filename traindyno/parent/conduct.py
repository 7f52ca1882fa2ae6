"""Runs the job's runs one after another, and writes down how each ended."""

import json
import time
from functools import partial
from math import inf
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence

from traindyno.core.jobs.journal_format import (
    DEADLINE,
    DEVICE_BUSY,
    EQUAL_BATCHES,
    EXITED,
    JOBS_DIED,
    MOST_DEATHS,
    NOT_RECORDED,
    OUTPACED,
    PARENT_ENDED,
    PEER_LOST,
    RUN_BEGAN,
    RUN_ENDED,
    RUN_LEFT,
    RUN_SKIPPED,
    STALLED,
    STOPPED,
)
from traindyno.core.step_log.line import SCATTER_VARIABLE
from traindyno.figures.in_job.outpaced import (
    MOST_STEPS,
    WARM_UP_STEPS,
    Pace,
    ended_by,
    fastest_of,
    most_seconds,
    pace_of,
)
from traindyno.figures.in_job.race import contenders_in_job
from traindyno.figures.in_job.run_scatter import measured_scatter, run_scatter
from traindyno.parent.attempt import JobAttempt
from traindyno.parent.batch_search import Finding, Searched, find_batch
from traindyno.parent.disk import remove
from traindyno.parent.document import RunOrder
from traindyno.parent.ends import EndVerdict, forget_end, keep_end, whole_ends, write_end
from traindyno.parent.journal import count_deaths
from traindyno.parent.output import RunOutput
from traindyno.parent.peers import PeerLost
from traindyno.parent.run_one import FORK, FRESH, Ended, Turn, made_ready, run_one
from traindyno.parent.step_times import RunLogs, StepsSoFar, are_alike, files_of, work_per_sample
from traindyno.parent.throw_away import warm_up

LOOK_AGAIN_SECONDS = 0.5
# What a built-in task is asked to do between two steps, or after the last one
PAUSES = ("evaluate", "evaluate_every_steps", "checkpoint_every_steps", "save_model")
Judge = Callable[[], Optional[EndVerdict]]
BEGIN = "begin"
SKIP = "skip"


class Completed(NamedTuple):
    """A completed run.

    ``quiet_seconds`` is the longest time for which it logged no step; unknown for a run of an
    earlier attempt.
    """

    run: RunOrder
    steps: StepsSoFar
    began_at: float
    quiet_seconds: float = inf


class QuietClock:
    """For how long a run has logged no step after its warm-up, by this host's clock."""

    def __init__(self) -> None:
        self._steps = 0
        self._since = time.monotonic()
        self.longest_seconds = 0.0

    def seconds(self, steps: int) -> float:
        now = time.monotonic()
        quiet = now - self._since if WARM_UP_STEPS <= self._steps < MOST_STEPS else 0.0
        self.longest_seconds = max(self.longest_seconds, quiet)
        if steps == self._steps:
            return quiet
        self._steps = steps
        self._since = now
        return 0.0


class Race:
    """What the job's completed runs took. The first host decides; the others hear it."""

    def __init__(
        self,
        attempt: JobAttempt,
        runs: Sequence[RunOrder],
        earlier: Mapping[str, List[Dict[str, Any]]],
    ) -> None:
        self._host = attempt.host
        self._peers = attempt.peers
        self._samples = attempt.job.race_samples if attempt.peers.rank == 0 else None
        self._scatter = run_scatter(
            attempt.job.instance_type,
            measured_scatter(attempt.host.environment.get(SCATTER_VARIABLE)),
        )
        self._runs = {run.run_id for run in attempt.job.runs}
        self._firsts = {run.run_id: first for first, run in attempt.job.again}
        self._completed: List[Completed] = []
        self._clocks: Dict[str, QuietClock] = {}
        for run in runs if self._samples is not None else ():
            for end in earlier[run.run_id]:
                self.add(run, end, str(end.get("job_name")))

    def add(self, run: RunOrder, end: Dict[str, Any], job_name: str) -> None:
        """A run that failed, or whose loss is not finite, outpaces no other."""
        if self._samples is None or (end.get("reason"), end.get("exit_code")) != (EXITED, 0):
            return
        logs = RunLogs(self._folder(run.run_id, job_name), self._peers.count)
        logs.read_new()
        steps = logs.steps()
        if steps is not None and not logs.has_diverged:
            clock = self._clocks.get(run.run_id)
            quiet = inf if clock is None else clock.longest_seconds
            self._completed.append(Completed(run, steps, float(end["began_at"]), quiet))

    def contenders(self, runs: int) -> str:
        """Ids of the first runs of the cells that run again after so many ``runs``, as JSON."""
        paces: Dict[str, List[Pace]] = {}
        for completed in self._completed:
            pace = _pace(completed, self._completed[0].steps)
            run_id = completed.run.run_id
            if pace:
                paces.setdefault(self._firsts.get(run_id, run_id), []).append(pace)
        return json.dumps(contenders_in_job(paces, self._scatter, runs))

    def judge_of(self, run: RunOrder) -> Judge:
        """The judge of a run that is about to begin.

        A cell's further run is not ended for its pace: of many, one is behind by chance.
        """
        is_raced = self._samples is not None and run.run_id in self._runs
        clock = QuietClock()
        if is_raced:
            self._clocks[run.run_id] = clock
        folder = self._folder(run.run_id, self._host.job_name)
        logs = RunLogs(folder, self._peers.count, earlier=files_of(folder))
        look_at = 0.0
        compared: List[str] = []

        def judge() -> Optional[EndVerdict]:
            nonlocal look_at, compared
            if time.monotonic() < look_at:
                return None
            look_at = time.monotonic() + LOOK_AGAIN_SECONDS
            logs.read_new()
            batches = logs.first_batches
            if batches != compared:
                compared = batches
                if self._are_equal(run, batches):
                    return EndVerdict(reason=EQUAL_BATCHES)
            if not is_raced:
                return None
            quiet_seconds = clock.seconds(logs.step_count)
            steps = None if logs.has_ended else logs.steps()
            return (
                None
                if steps is None
                else self._verdict(run, steps, quiet_seconds, logs.compile_seconds)
            )

        return judge

    def _are_equal(self, run: RunOrder, batches: Sequence[str]) -> bool:
        """Whether two of the run's processes, on this host or on two, have the same first
        ``batches``. The first host that has some says so.
        """
        own = str(self._peers.rank)
        keys = ["{}/batches/{}".format(run.run_id, sums) for sums in batches]
        return len({*keys}) < len(keys) or any(self._peers.say(key, own) != own for key in keys)

    def _verdict(
        self, run: RunOrder, steps: StepsSoFar, quiet_seconds: float, compile_seconds: float
    ) -> Optional[EndVerdict]:
        assert self._samples is not None
        paces = {
            completed.run.run_id: pace
            for completed in self._completed
            if (pace := _pace(completed, steps)) is not None
        }
        by = fastest_of(paces, self._samples)
        best = pace_of(steps.seconds, steps.samples) if by is None else paces[by]
        is_overdue = best is not None and quiet_seconds > most_seconds(
            best, steps.samples, compile_seconds
        )
        if by is None:
            return EndVerdict(reason=STALLED) if is_overdue and not _may_pause(run) else None
        overdue_seconds = quiet_seconds if is_overdue else None
        bound = ended_by(
            steps.seconds,
            steps.samples,
            paces,
            self._samples,
            self._scatter,
            overdue_seconds=overdue_seconds,
        )
        return None if bound is None else EndVerdict(reason=OUTPACED, bound=bound)

    def _folder(self, run_id: str, job_name: str) -> Path:
        return self._host.step_log(run_id) / job_name


def _may_pause(run: RunOrder) -> bool:
    """Whether the run may be quiet while nothing is wrong; a script always may."""
    measurement = run.hyperparameters.get("measurement")
    return not isinstance(measurement, dict) or any(map(measurement.get, PAUSES))


def _pace(run: Completed, reference: StepsSoFar) -> Optional[Pace]:
    """In samples with as much work as those of ``reference``; None if its work is counted
    otherwise.
    """
    own = work_per_sample(run.steps)
    others = work_per_sample(reference)
    if not (are_alike(run.steps, reference) and own and others):
        return None
    startup = max(run.steps.begin - run.began_at, 0.0)
    pace = pace_of(run.steps.seconds, run.steps.samples * own / others, startup)
    return pace and pace._replace(longest_seconds=max(pace.longest_seconds, run.quiet_seconds))


class Conductor:
    """One attempt of a job, on this host. ``left_because``: why it ended before its last run.

    Which runs have ended is read once, before any run of this attempt can write ends of others.
    """

    def __init__(self, attempt: JobAttempt) -> None:
        self.left_because: Optional[str] = None
        self._attempt = attempt
        self._write = attempt.journal.write
        self._begun = 0
        runs = [*attempt.job.runs, *(run for _, run in attempt.job.again)]
        earlier = {run.run_id: list(whole_ends(attempt.host.folder, run.run_id)) for run in runs}
        self._ended_earlier = {run_id for run_id, ends in earlier.items() if ends}
        self._ends: Dict[str, Optional[str]] = dict.fromkeys(
            run_id for run_id in earlier if run_id not in self._ended_earlier
        )
        self._race = Race(attempt, runs, earlier)

    def conduct(self) -> None:
        """Raises PeerLost."""
        warm_up(self._attempt, self._ended_earlier)
        for run in self._attempt.job.runs:
            self._carry(run)
        again = self._attempt.job.again if self.left_because is None else ()
        said = "[]"
        for number, (first, run) in enumerate(again):
            done, place = divmod(number, len(self._attempt.job.runs))
            if place == 0:
                said = self._attempt.peers.first_says(
                    "again/{}".format(done), partial(self._race.contenders, 1 + done)
                )
            if first in json.loads(said):
                self._carry(run)
        self._keep_ends()
        self._attempt.peers.barrier("all")
        self._write(PARENT_ENDED, reason=self.left_because)
        self._attempt.peers.leave()

    def _carry(self, run: RunOrder) -> None:
        attempt = self._attempt
        what = attempt.peers.first_says("{}/what".format(run.run_id), lambda: self._what(run))
        output = RunOutput(attempt.host.log(run.run_id), run.run_id)
        searched = Searched(run, None, 0, has_probed=False)
        if what == BEGIN:
            searched = find_batch(run, attempt)
            run = searched.run
            if searched.answers:  # the next attempt has these probes, and its time for the run
                key = "{}/after-probes".format(run.run_id)
                what = attempt.peers.first_says(
                    key, lambda: DEADLINE if attempt.time_left.is_over else BEGIN
                )
            if what == BEGIN:
                what = made_ready(run, attempt, output)
        if what == SKIP:
            self._ends.pop(run.run_id, None)
            self._write(RUN_SKIPPED, run_id=run.run_id)
        elif what in (JOBS_DIED, DEVICE_BUSY):
            ended = Ended(verdict=EndVerdict(reason=what), failure=None, leftovers={}, oom_kills=0)
            self._record(run, ended, place=None, began_at=time.time(), began=time.monotonic())
        elif what in (FORK, FRESH):
            self._begin(run, output, is_forked=what == FORK, searched=searched)
        else:
            self._leave(run, what, began=searched.has_probed)

    def _what(self, run: RunOrder) -> str:
        attempt = self._attempt
        if run.run_id in self._ended_earlier:
            return SKIP
        if attempt.stop.is_made or self.left_because == STOPPED:
            return STOPPED
        if count_deaths(attempt.host, run.run_id, attempt.job.cut_off) >= MOST_DEATHS:
            return JOBS_DIED
        # A job whose limit is too short for any run would leave all of them in each attempt.
        return BEGIN if self._begun == 0 or attempt.time_left.fits_another() else DEADLINE

    def _begin(
        self, run: RunOrder, output: RunOutput, *, is_forked: bool, searched: Searched
    ) -> None:
        attempt = self._attempt
        began_at = time.time()
        began = time.monotonic()
        self._begun += 1
        forget_end(attempt.host, run.run_id)
        self._write(RUN_BEGAN, run_id=run.run_id, place=self._begun)
        try:
            judge = self._race.judge_of(run)
            probed = searched.answers > 0
            turn = Turn(
                began=began, place=self._begun, is_forked=is_forked, judge=judge, was_probed=probed
            )
            ended = run_one(run, attempt, output, turn)
            attempt.time_left.took(time.monotonic() - began)
            if ended.verdict.left is None:
                self._record(
                    run,
                    ended,
                    place=self._begun,
                    began_at=began_at,
                    began=began,
                    batch=searched.finding,
                )
            else:
                self._leave(run, ended.verdict.left, began=True)
        except PeerLost:
            self._leave(run, PEER_LOST, began=True)
            raise

    def _leave(self, run: RunOrder, reason: str, *, began: bool) -> None:
        self.left_because = reason
        self._write(RUN_LEFT, run_id=run.run_id, reason=reason, began=began)

    def _record(
        self,
        run: RunOrder,
        ended: Ended,
        *,
        place: Optional[int],
        began_at: float,
        began: float,
        batch: Optional[Finding] = None,
    ) -> None:
        """The checkpoints go last: no attempt needs them once all hosts have written the end."""
        attempt = self._attempt
        verdict = ended.verdict
        end = {
            "reason": verdict.reason,
            "exit_code": verdict.exit_code,
            "signal": verdict.signal,
            "failed_host": verdict.host,
            "failure": ended.failure,
            "oom_kills": ended.oom_kills,
            "began_at": began_at,
            "ended_at": time.time(),
            "own_milliseconds": round((time.monotonic() - began) * 1e3),
            "place": place,
            "leftovers": ended.leftovers,
            "bound": verdict.bound,
            "batch": batch,
        }
        key = "{}/not_recorded".format(run.run_id)
        text = write_end(attempt.host, run.run_id, end)
        if text is None:
            attempt.peers.say(key, attempt.host.name)
        attempt.peers.barrier("{}/recorded".format(run.run_id))
        if attempt.peers.heard(key) is not None:
            self._leave(run, NOT_RECORDED, began=place is not None)
            return
        self._ends[run.run_id] = text
        self._race.add(run, end, attempt.host.job_name)
        remove(attempt.host.state(run.run_id))
        self._write(RUN_ENDED, run_id=run.run_id, reason=verdict.reason)

    def _keep_ends(self) -> None:
        """The ends of this attempt as this parent gave them, since a run can write ends of
        others.
        """
        for run_id, text in self._ends.items():
            if text is None:
                forget_end(self._attempt.host, run_id)
            else:
                keep_end(self._attempt.host, run_id, text)
