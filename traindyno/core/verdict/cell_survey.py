"""The survey of a suite's cells: what their trials say, handed to the model over the axes."""

from collections.abc import Iterator, Mapping, Sequence

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.projection import paid_usd
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.search.space import build_space
from traindyno.core.search.survey import Seen, Survey, survey_cells
from traindyno.core.suite.suite import Suite
from traindyno.core.verdict.cell_row import CellRow
from traindyno.core.verdict.cell_trials import CellTrials, mean_of
from traindyno.core.verdict.goal_metric import Metric, estimate_of, limited_estimate, quantity_of
from traindyno.core.verdict.refusals import BREAKS_LIMIT


def survey_trials(
    suite: Suite, trials: Sequence[CellTrials], rows: Sequence[CellRow], metric: Metric, refused: Mapping[str, str]
) -> Survey:
    """In the order of the cells."""
    seen = {
        index: found
        for index, (each, row) in enumerate(zip(trials, rows, strict=True))
        if (found := _seen(suite, each, row, metric, refused)) is not None
    }
    replicates = [trials[index].values(quantity_of(metric, suite.goal.target)) for index in sorted(seen)]
    limits = (limited_estimate(rows[index], suite.goal)[1] for index in seen)
    return survey_cells(
        build_space([each.cell for each in trials]),
        seen,
        [index for index, each in enumerate(trials) if (each.failed or each.measured) and index not in seen],
        tolerance=suite.tolerance,
        limit=next(limits, None),
        replicates=replicates,
    )


def _seen(suite: Suite, trials: CellTrials, row: CellRow, metric: Metric, refused: Mapping[str, str]) -> Seen | None:
    found = estimate_of(row, metric)
    if found is None or found.mean <= 0:
        return None
    limited, _ = limited_estimate(row, suite.goal)
    return Seen(
        value=found.mean,
        trials=found.count,
        cost=_trial_cost(trials),
        limited=limited.mean if limited else None,
        may_win=refused.get(trials.cell.cell_id, BREAKS_LIMIT) == BREAKS_LIMIT,
    )


def _trial_cost(trials: CellTrials) -> float:
    """In USD, or in billed instance hours where no price is known; 1 where neither is."""
    usd = mean_of([_usd(result) for result in trials.measured])
    return usd or mean_of(list(_instance_hours(trials))) or 1.0


def _usd(result: RunResult) -> float | None:
    paid = paid_usd(result)
    return None if paid is None else float(paid)


def _instance_hours(trials: CellTrials) -> Iterator[float | None]:
    for result in trials.measured:
        seconds = result.billable_seconds
        yield None if seconds is None else seconds * trials.cell.settings.instance_count / SECONDS_PER_HOUR
