"""Cells that a model-based search dropped: not measured at all, or not again after one trial."""

from dataclasses import dataclass

from traindyno.core.search.survey import CellForecast
from traindyno.core.statistics.estimates import CONFIDENCE, Interval
from traindyno.core.verdict.cell_trials import CellTrials
from traindyno.core.verdict.evidence import Evidence
from traindyno.core.verdict.recommendation import Recommendation


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedCell:
    """``ratio`` is this cell ÷ the best one by the model, of the goal's metric, with its interval: less is better.

    ``chance`` is the model's probability that it is better than the best by more than the tolerance, ``failure`` that
    it fails or breaks the goal's limit. ``trials`` is 0 for a cell that was not measured.
    """

    cell_id: str
    trials: int
    ratio: float
    interval: Interval
    chance: float
    failure: float


def find_dropped(evidence: Evidence, found: Recommendation | None) -> tuple[DroppedCell, ...]:
    """All cells that are neither compared nor refused nor failed, the nearest to the best first."""
    survey = evidence.survey
    if survey is None or survey.best is None or found is None:
        return ()
    compared = {each.cell.cell_id for each in evidence.compared}
    dropped = [
        _dropped(each, forecast)
        for each, forecast in zip(evidence.trials, survey.forecasts, strict=True)
        if each.cell.cell_id not in compared | evidence.refused.keys() and not (each.failed and not each.measured)
    ]
    return tuple(sorted(dropped, key=lambda each: each.ratio))


def _dropped(trials: CellTrials, forecast: CellForecast) -> DroppedCell:
    return DroppedCell(
        cell_id=trials.cell.cell_id,
        trials=len(trials.measured),
        ratio=forecast.ratio,
        interval=Interval(low=forecast.low, high=forecast.high, confidence=CONFIDENCE),
        chance=forecast.chance,
        failure=1 - forecast.works,
    )
