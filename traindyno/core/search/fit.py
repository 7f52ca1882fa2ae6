"""The hyperparameters that fit the observations: several sets, each weighted by its posterior probability.

A single best set would be overconfident after few trials. The sets that a search for the best one visits are kept and
averaged over (a coarse form of the integration of Snoek, Larochelle and Adams 2012).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from statistics import fmean

from traindyno.core.search.gaussian_process import GaussianProcess, Observation, condition
from traindyno.core.search.kernel import Hyperparameters
from traindyno.core.search.space import Axis

MOST_SETS = 6
# Sets with a posterior probability below this share of the best one's are left out.
LEAST_SHARE = 0.02
# Step sizes on the logarithmic scale; one sweep over all hyperparameters for each.
STEPS = (1.5, 0.75, 0.75)


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalPrior:
    """A prior on a logarithm."""

    mean: float
    deviation: float

    def log_density(self, value: float) -> float:
        return -(((value - self.mean) / self.deviation) ** 2) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Priors:
    variance: NormalPrior
    noise: NormalPrior
    weight: NormalPrior = NormalPrior(mean=log(0.3), deviation=1.5)
    length: NormalPrior = NormalPrior(mean=log(0.6), deviation=0.7)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedProcess:
    weight: float
    process: GaussianProcess


def fit(axes: Sequence[Axis], observations: Sequence[Observation], priors: Priors) -> tuple[WeightedProcess, ...]:
    """The processes of the best sets, with weights that add up to 1. At least one observation is needed."""
    center = fmean([each.value for each in observations])
    visited: dict[Hyperparameters, tuple[float, GaussianProcess]] = {}

    def score(candidate: Hyperparameters) -> float:
        if candidate not in visited:
            process = condition(axes, observations, candidate, center=center)
            visited[candidate] = (process.log_likelihood + _log_prior(candidate, axes, priors), process)
        return visited[candidate][0]

    best = Hyperparameters(
        variance=priors.variance.mean,
        noise=priors.noise.mean,
        weights=(priors.weight.mean,) * len(axes),
        lengths=(priors.length.mean,) * len(axes),
    )
    for step in STEPS:
        for move in range(_moves(axes)):
            best = max((best, *_neighbours(best, move, step, axes)), key=score)
    return _heaviest(list(visited.values()))


def _moves(axes: Sequence[Axis]) -> int:
    return 2 + 2 * len(axes)


def _neighbours(center: Hyperparameters, move: int, step: float, axes: Sequence[Axis]) -> Iterator[Hyperparameters]:
    """One step up and one step down along one hyperparameter."""
    for change in (step, -step):
        if move == 0:
            yield replace(center, variance=center.variance + change)
        elif move == 1:
            yield replace(center, noise=center.noise + change)
        elif move < 2 + len(axes):
            yield replace(center, weights=_changed(center.weights, move - 2, change))
        elif axes[move - 2 - len(axes)].positions is not None:
            yield replace(center, lengths=_changed(center.lengths, move - 2 - len(axes), change))


def _changed(values: tuple[float, ...], index: int, change: float) -> tuple[float, ...]:
    return (*values[:index], values[index] + change, *values[index + 1 :])


def _log_prior(candidate: Hyperparameters, axes: Sequence[Axis], priors: Priors) -> float:
    lengths = [length for length, axis in zip(candidate.lengths, axes, strict=True) if axis.positions is not None]
    return (
        priors.variance.log_density(candidate.variance)
        + priors.noise.log_density(candidate.noise)
        + sum(map(priors.weight.log_density, candidate.weights))
        + sum(map(priors.length.log_density, lengths))
    )


def _heaviest(scored: Sequence[tuple[float, GaussianProcess]]) -> tuple[WeightedProcess, ...]:
    ranked = sorted(scored, key=lambda each: -each[0])[:MOST_SETS]
    shares = [exp(score - ranked[0][0]) for score, _ in ranked]
    kept = [(share, process) for share, (_, process) in zip(shares, ranked, strict=True) if share >= LEAST_SHARE]
    total = sum(share for share, _ in kept)
    return tuple(WeightedProcess(weight=share / total, process=process) for share, process in kept)
