"""The next runs of an execution, from the results so far."""

from collections.abc import Sequence
from dataclasses import replace
from math import ceil

from traindyno.core.jobs.outcome import OWN_FAILURES
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.runs import make_runs, round_of, trial_runs, with_seeds
from traindyno.core.suite.suite import Run, Suite
from traindyno.core.verdict.cell_runs import CellRuns, lost_long_runs
from traindyno.core.verdict.evidence import Evidence, may_yet_win
from traindyno.core.verdict.found_batch import missing_trials, searches_batch
from traindyno.core.verdict.judge import gather_evidence, judge_evidence, looks_of
from traindyno.core.verdict.verdict import Verdict
from traindyno.figures.hosts import HostPriors
from traindyno.figures.selection import Relation

# A cell is dropped after so many trials without information (no capacity, an image that can't be
# pulled).
MOST_UNTOLD = 2
# If the answer needs more than so many times the suite's trials (80 % power), the suite's trials
# seldom settle it. Where other work may stall runs, further ones are as likely to be disturbed.
MOST_TIMES_NEEDED = 4
MOST_TIMES_OF_STALLED = 2
# Cells that long runs confirm.
LEADERS = 2
Trial = tuple[Cell, int]


def open_cells(verdict: Verdict, searched: Sequence[CellRuns]) -> list[CellRuns]:
    """None of ``searched`` if the answer is settled: one cell is left, which is not near the goal's
    limit.
    """
    if verdict.finding.is_settled:
        return []
    near_limit = set(verdict.refused)
    rivals = {rival.cell_id for rival in verdict.related(Relation.OPEN, Relation.UNKNOWN)}
    candidates = [
        runs for runs in searched if runs.key in {verdict.recommended, *rivals, *near_limit}
    ]
    is_open = len(candidates) > 1 or any(runs.key in near_limit for runs in candidates)
    return candidates if is_open else []


def is_futile(suite: Suite, verdict: Verdict) -> bool:
    """Whether the remaining trials are unlikely to settle the answer, because it needs far more."""
    if verdict.related(Relation.UNKNOWN):  # a cell with one run may win
        return False
    if (
        not verdict.related(Relation.OPEN) or verdict.to_decide.other_hosts
    ):  # a further job is another draw of hosts
        return False
    needed = verdict.to_decide.trials
    times = MOST_TIMES_OF_STALLED if verdict.scatter.has_stalls else MOST_TIMES_NEEDED
    return needed is None or needed > times * suite.measurement.trials


def next_race_trials(
    suite: Suite, evidence: Evidence, results: Sequence[RunResult]
) -> tuple[Trial, ...]:
    """The trials of the next round; none if the answer is settled, the contenders' trials are used
    up, or cells do unlike work.

    ``evidence`` is that of ``results``. A trial whose result was lost is planned again.
    """
    if evidence.unlike is not None:
        return ()
    done = {(result.run.cell.cell_id, result.run.trial) for result in results}
    trials = range(1, suite.measurement.trials + 1)
    left = {
        runs.key: [trial for trial in trials if (runs.key, trial) not in done]
        for runs in evidence.cells
    }
    gone = frozenset(
        result.run.run_id
        for runs in evidence.cells
        if not runs.outpaced and (runs.failed or not may_yet_win(evidence.refused.get(runs.key)))
        for result in runs.measured
    )
    # cells of which no trial told how they do, which another one may; runs that are gone outpace no
    # cell
    untold = []
    for runs in evidence.cells:
        outpaced = (result.bound is None or result.bound.by not in gone for result in runs.outpaced)
        is_out = runs.measured or runs.failed or any(outpaced) or len(runs.others) >= MOST_UNTOLD
        if left[runs.key] and not is_out:
            untold.append((runs.cell, left[runs.key][0]))
    if untold:
        return tuple(untold)
    return tuple(
        (runs.cell, trial)
        for runs in _choose(suite, evidence)
        for trial in left[runs.key][: evidence.passes]
    )


def _choose(suite: Suite, evidence: Evidence) -> list[CellRuns]:
    able = [
        runs
        for runs in evidence.cells
        if may_yet_win(evidence.refused.get(runs.key)) and runs.measured
    ]
    searched = [runs for runs in able if len(runs.measured) > 1 or runs.key in evidence.contenders]
    if all(len(runs.measured) == 1 for runs in searched):
        return searched
    # rounds that ran cells again; a cell that left the race and came back adds none to the planned
    # ones
    again = [result.run for runs in searched for result in runs.measured[1:]]
    if len({(run.execution_id, round_of(run)) for run in again}) >= looks_of(suite, evidence):
        return []
    verdict = judge_evidence(suite, evidence)
    return [] if is_futile(suite, verdict) else open_cells(verdict, searched)


def plan_round(
    suite: Suite,
    cells: Sequence[Cell],
    *,
    execution_id: str,
    round_number: int,
    results: Sequence[RunResult] = (),
    host_priors: HostPriors | None = None,
) -> tuple[Run, ...]:
    """Rounds count from 1; no runs means that the search has ended.

    ``results``: of all earlier rounds.

    ``host_priors`` are the verdict's own, so that a search ends when the verdict is decided.

    There are no runs after ``last_round``, however many results were lost.
    """
    if round_number == 1:
        has_one = suite.search.is_race or searches_batch(cells)
        trials = [1] if has_one else range(1, suite.measurement.trials + 1)
        return with_seeds(suite, trial_runs(execution_id, cells, trials))
    if round_number > last_round(suite, cells):
        return ()
    chosen: Sequence[Trial] = missing_trials(suite, cells, results) if searches_batch(cells) else []
    evidence = None
    if suite.search.is_race or suite.measurement.confirm:
        evidence = gather_evidence(suite, cells, results, host_priors=host_priors)
    if suite.search.is_race and evidence is not None:
        chosen = next_race_trials(suite, evidence, results)
    is_confirmed = any(result.run.confirming_steps for result in results)
    if evidence is not None and suite.measurement.confirm and (is_confirmed or not chosen):
        steps = _lost_once(results)
        trial = suite.measurement.trials + 1 + is_confirmed
        if not is_confirmed:
            steps = confirming_steps(suite, judge_evidence(suite, evidence))
        leaders = [(cell, trial) for cell in cells if cell.cell_id in steps]
        runs = make_runs(execution_id, leaders, round_number=round_number)
        return with_seeds(
            suite, [replace(run, confirming_steps=steps[run.cell.cell_id]) for run in runs]
        )
    return with_seeds(suite, make_runs(execution_id, chosen, round_number=round_number))


def _lost_once(results: Sequence[RunResult]) -> dict[str, int]:
    """Cell id → steps of the long runs that a fault has lost, which run once more."""
    return {
        name: own[-1].run.confirming_steps or 0
        for name, own in lost_long_runs(results).items()
        if len(own) == 1 and own[0].outcome not in OWN_FAILURES
    }


def confirming_steps(suite: Suite, verdict: Verdict) -> dict[str, int]:
    """Cell id → steps of its long run, for the two leaders: the time that the suite names, at the
    rate of their trials, or the whole work if that is shorter.
    """
    confirm = suite.measurement.confirm
    leader = verdict.recommended
    if confirm is None or leader is None:
        return {}
    nearest = sorted(verdict.dropped, key=lambda cell_id: -verdict.dropped[cell_id])
    leaders = [leader, *(rival.cell_id for rival in verdict.rivals), *nearest][:LEADERS]
    counts = {}
    for row in map(verdict.row, leaders):
        steps = row.steps_per_second
        samples = row.samples_per_second
        if steps is not None and samples is not None:
            seconds = min(60 * confirm.minutes, verdict.examples / samples.mean)
            counts[row.cell_id] = max(1, ceil(seconds * steps.mean))
    return counts


def last_round(suite: Suite, cells: Sequence[Cell]) -> int:
    """Twice the rounds of a search without losses: a result that is lost repeatedly ends the
    search.
    """
    rounds = suite.measurement.trials if suite.search.is_race else 1 + searches_batch(cells)
    return 2 * (rounds + bool(suite.measurement.confirm))
