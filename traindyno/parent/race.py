"""Ends a run that is so far behind the best earlier one of its job that it can't win."""

import time
from pathlib import Path
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from traindyno.core.jobs.journal_format import EXITED, OUTPACED
from traindyno.core.search.outpaced import Pace, bound_of, is_outpaced, pace_of
from traindyno.parent.attempt import Attempt
from traindyno.parent.document import RunOrder
from traindyno.parent.ends import whole_ends
from traindyno.parent.step_times import RunLogs, Steps, are_alike, files_of, work_per_sample
from traindyno.parent.verdicts import Verdict

LOOK_AGAIN_SECONDS = 0.5
Judge = Callable[[], Optional[Verdict]]


class Completed(NamedTuple):
    run: RunOrder
    steps: Steps
    began_at: float


class Race:
    """What the job's completed runs took. The first host decides; the others hear it."""

    def __init__(self, attempt: Attempt) -> None:
        self._host, self._count = attempt.host, attempt.peers.count
        self._samples = attempt.job.race_samples if attempt.peers.rank == 0 else None
        self._completed: List[Completed] = []
        for run in attempt.job.runs if self._samples is not None else ():
            for end in whole_ends(self._host.folder, run.run_id):
                self.add(run, end, str(end.get("job_name")))

    def add(self, run: RunOrder, end: Dict[str, Any], job_name: str) -> None:
        """A run that failed, or whose loss is not finite, outpaces no other."""
        if self._samples is None or (end.get("reason"), end.get("exit_code")) != (EXITED, 0):
            return
        logs = RunLogs(self._folder(run.run_id, job_name), self._count)
        logs.read_new()
        steps = logs.steps()
        if steps is not None and not logs.has_diverged:
            self._completed.append(Completed(run, steps, float(end["began_at"])))

    def judge_of(self, run: RunOrder, began_at: float) -> Judge:
        """For a run that is about to begin."""
        if self._samples is None or not self._completed:
            return lambda: None
        folder = self._folder(run.run_id, self._host.job_name)
        logs = RunLogs(folder, self._count, earlier=files_of(folder))
        look_at = 0.0

        def judge() -> Optional[Verdict]:
            nonlocal look_at
            if time.monotonic() < look_at:
                return None
            look_at = time.monotonic() + LOOK_AGAIN_SECONDS
            logs.read_new()
            steps = None if logs.has_ended else logs.steps()
            return None if steps is None else self._verdict(Completed(run, steps, began_at))

        return judge

    def _verdict(self, judged: Completed) -> Optional[Verdict]:
        """A slower run of the cell that is ahead says how runs differ."""
        samples, steps, cell_id = self._samples, judged.steps, judged.run.cell_id
        others = (each for each in self._completed if not cell_id or each.run.cell_id != cell_id)
        paces = {each.run.run_id: pace for each in others if (pace := _pace(each, steps)) is not None}
        own = _pace(judged, steps)
        if own is None or not paces:
            return None
        by = min(paces, key=lambda run_id: paces[run_id].seconds_of(samples))
        if not is_outpaced(own, paces[by], samples):
            return None
        return Verdict(reason=OUTPACED, bound=bound_of(own, paces[by], by, samples))

    def _folder(self, run_id: str, job_name: str) -> Path:
        return self._host.step_log(run_id) / job_name


def _pace(run: Completed, reference: Steps) -> Optional[Pace]:
    """In samples with as much work as those of ``reference`` have; None for a run that counts other work."""
    own, others = work_per_sample(run.steps), work_per_sample(reference)
    if not (are_alike(run.steps, reference) and own and others):
        return None
    startup = max(run.steps.begin - run.began_at, 0.0)
    return pace_of(run.steps.seconds, run.steps.samples * own / others, startup)
