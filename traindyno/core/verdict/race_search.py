"""The rounds of a race: all cells once, then the contenders forward and backward until the answer is settled."""

from collections.abc import Sequence, Set

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.search.race import PASSES
from traindyno.core.suite.runs import planned_cell_id, round_of
from traindyno.core.suite.suite import Cell, Suite
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.evidence import Evidence
from traindyno.core.verdict.open_cells import MOST_UNTOLD, is_futile, open_cells
from traindyno.core.verdict.refused_cells import may_yet_win
from traindyno.core.verdict.verdict import judge_evidence, looks_of

Trial = tuple[Cell, int]


def most_rounds(suite: Suite) -> int:
    """The rounds of a race without lost results: those of a suite whose runs have jobs of their own."""
    return suite.measurement.trials


def next_race_trials(suite: Suite, evidence: Evidence, results: Sequence[RunResult]) -> tuple[Trial, ...]:
    """The trials of the next round; none if the answer is settled, the contenders' trials are used up, or cells do
    unlike work.

    ``evidence`` is that of ``results``. A trial whose result was lost is planned again.
    """
    if evidence.unlike is not None:
        return ()
    done: dict[str, set[int]] = {each.cell.cell_id: set() for each in evidence.trials}
    for result in results:
        done.setdefault(planned_cell_id(result.run), set()).add(result.run.trial)
    left = {
        cell_id: [trial for trial in range(1, suite.measurement.trials + 1) if trial not in trials]
        for cell_id, trials in done.items()
    }
    gone = _runs_of_gone_cells(evidence)
    untold = [each for each in evidence.trials if _is_untold(each, gone) and left[each.cell.cell_id]]
    if untold:
        return tuple((each.cell, left[each.cell.cell_id][0]) for each in untold)
    chosen = _choose(suite, evidence)
    passes = PASSES if evidence.shares_jobs else 1
    return tuple((each.cell, trial) for each in chosen for trial in left[each.cell.cell_id][:passes])


def _runs_of_gone_cells(evidence: Evidence) -> frozenset[str]:
    """The ids of the runs of cells that can't win any more, although none is ahead of them: being behind them tells
    nothing.
    """
    return frozenset(
        result.run.run_id
        for each in evidence.trials
        if not each.outpaced and (each.failed or not may_yet_win(evidence.refused.get(each.cell.cell_id)))
        for result in each.measured
    )


def _is_untold(trials: CellTrials, gone: Set[str]) -> bool:
    """Whether no trial told how the cell does, which another one may. ``gone``: runs that outpace no cell."""
    is_out = trials.failed or any(result.bound is None or result.bound.by not in gone for result in trials.outpaced)
    return not trials.measured and not is_out and len(trials.others) < MOST_UNTOLD


def _choose(suite: Suite, evidence: Evidence) -> list[CellTrials]:
    able = [each for each in evidence.trials if may_yet_win(evidence.refused.get(each.cell.cell_id)) and each.measured]
    contenders = evidence.contenders
    searched = [each for each in able if len(each.measured) > 1 or each.cell.cell_id in contenders]
    if all(len(each.measured) == 1 for each in searched):
        return searched
    if _looks(suite, searched) >= looks_of(suite, evidence).count:
        return []
    verdict = judge_evidence(suite, evidence)
    return [] if is_futile(suite, verdict) else open_cells(verdict, searched)


def _looks(suite: Suite, searched: Sequence[CellTrials]) -> int:
    """The rounds that ran cells again. A cell that left the race and came back adds none to the planned ones."""
    return len({round_of(result.run) for each in searched for result in each.measured[1:]})
