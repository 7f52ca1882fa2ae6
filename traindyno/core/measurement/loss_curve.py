"""The loss of a run by step, averaged over ranks, with fewer points for long runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan
from statistics import fmean

from traindyno.core.step_log.step_table import StepTable
from traindyno.figures.estimates import mean_of

MOST_POINTS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class LossPoint:
    """Mean loss of ``steps`` neighbouring logged steps, not a number if one of theirs is not
    finite.

    ``samples`` counts the samples that all ranks had processed by the last of these steps.
    ``seconds``: from the begin of the job's log to the end of that step.
    """

    step: int
    samples: int
    steps: int
    loss: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LossCurve:
    """Loss of a run by step.

    ``last`` is a single step's loss; ``diverged_at_step`` is the first step whose loss was not
    finite.
    """

    points: tuple[LossPoint, ...]
    last: float | None
    diverged_at_step: int | None

    @property
    def finite_points(self) -> tuple[LossPoint, ...]:
        """The points with finite losses."""
        return tuple(point for point in self.points if isfinite(point.loss))


def draw_loss_curve(*tables: StepTable, began_at: float) -> LossCurve:
    """The loss curve of a run's steps, each once; a resumed run has them in several tables.

    ``began_at``: epoch seconds.
    """
    # of each step the mean over the ranks that logged a loss: of a pipeline, the last stage
    by_step = (zip(*(rank.steps.losses for rank in table.ranks), strict=True) for table in tables)
    losses = [mean_of(losses) for steps in by_step for losses in steps]
    finite = [loss for loss in losses if loss is not None and isfinite(loss)]
    broken = (index for index, loss in enumerate(losses) if loss is not None and not isfinite(loss))
    diverged = next(broken, None)
    return LossCurve(
        points=tuple(_downsample(tables, losses, began_at)),
        last=finite[-1] if finite else None,
        diverged_at_step=None if diverged is None else _step_at(tables, diverged)[0],
    )


def _downsample(
    tables: Sequence[StepTable], losses: Sequence[float | None], began_at: float
) -> list[LossPoint]:
    counts = [count for table in tables for count in table.samples]
    stride = -(-len(losses) // MOST_POINTS) if losses else 1
    points = []
    samples = 0
    for begin in range(0, len(losses), stride):
        end = min(begin + stride, len(losses))
        samples += sum(counts[begin:end])
        known = [loss for loss in losses[begin:end] if loss is not None]
        if known:
            mean = fmean(known) if all(map(isfinite, known)) else nan
            number, ended_at = _step_at(tables, end - 1)
            points.append(
                LossPoint(
                    step=number,
                    samples=samples,
                    steps=len(known),
                    loss=mean,
                    seconds=ended_at - began_at,
                )
            )
    return points


def _step_at(tables: Sequence[StepTable], position: int) -> tuple[int, float]:
    """The number of a step, and when its slowest rank ended it. ``position``: over all tables."""
    for table in tables:
        if position < len(table):
            return table.numbers[position], max(rank.steps.ends[position] for rank in table.ranks)
        position -= len(table)
    raise IndexError(position)
