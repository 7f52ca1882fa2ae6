"""How well a cell's model learned: loss and perplexity of the last evaluation, and the time and
cost to a target.
"""

from dataclasses import dataclass, replace
from math import isfinite
from typing import ClassVar

from traindyno.core.costs.to_target import evaluated
from traindyno.core.documents.stored import StoredPart
from traindyno.core.measurement.loss_parity import are_draws_of_seeds
from traindyno.core.run.record import QualityTarget
from traindyno.core.suite.choices import Quality
from traindyno.core.verdict.cell_runs import CellRuns
from traindyno.core.verdict.figure_table import last_value
from traindyno.figures.estimates import Estimate, estimate, estimate_share
from traindyno.figures.model import TrialModel
from traindyno.figures.selection import Correction
from traindyno.figures.table import FigureColumn


@dataclass(frozen=True, slots=True, kw_only=True)
class CellQuality(StoredPart):
    """The quality that a cell's trials reached.

    ``accuracy``, ``loss`` and ``perplexity`` are of the last evaluation of each measured trial. The
    rest is about the goal's target, None where it has none: ``reached`` of the measured trials
    reached it, ``best`` is the best value of any evaluation, ``seconds`` and ``usd`` are the time
    and the cost until it was reached. Estimates have no interval if the trials are not draws of the
    seed.
    """

    kind: ClassVar[str] = "quality"
    #: Several trials are one draw of what depends on the seed.
    repeats_a_seed: bool = False
    accuracy: Estimate | None = None
    loss: Estimate | None = None
    perplexity: Estimate | None = None
    reached: int | None = None
    best: float | None = None
    seconds: Estimate | None = None
    usd: Estimate | None = None


def measure_quality(
    runs: CellRuns, model: TrialModel, target: QualityTarget | None, correction: Correction | None
) -> CellQuality:
    is_of_seeds = are_draws_of_seeds(runs.measured)

    def last(quality: Quality) -> Estimate | None:
        reported = (last_value(result, quality) for result in runs.measured)
        values = [value for value in reported if value is not None]
        is_share = quality is Quality.ACCURACY
        if not values or not (is_share or all(value > 0 and isfinite(value) for value in values)):
            return None
        mean = estimate_share(values) if is_share else estimate(values)
        return mean if is_of_seeds else replace(mean, variation=None, interval=None)

    known = CellQuality(
        repeats_a_seed=len(runs.measured) > 1 and not is_of_seeds,
        accuracy=last(Quality.ACCURACY),
        loss=last(Quality.LOSS),
        perplexity=last(Quality.PERPLEXITY),
    )
    if target is None:
        return known
    seen = [
        value
        for result in runs.measured
        for _, value in evaluated(result, target.quality)
        if isfinite(value)
    ]
    return replace(
        known,
        reached=len(model.figures.trials(runs.key, FigureColumn.SECONDS_TO_TARGET)),
        best=target.best(seen) if seen else None,
        seconds=model.estimate(runs.key, FigureColumn.SECONDS_TO_TARGET, correction),
        usd=model.estimate(runs.key, FigureColumn.USD_TO_TARGET, correction),
    )
