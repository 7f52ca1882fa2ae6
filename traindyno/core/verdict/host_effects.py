"""How the trials of each host compare with the others of their cells: a slow host is slow in all of its cells."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean

from traindyno.core.measurement.run_result import RunResult
from traindyno.core.verdict.cell_trials import hosts_of, is_measured


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTrial:
    """``relative_rate`` is the trial's rate ÷ the mean rate of its cell's trials on all hosts."""

    run_id: str
    label: str
    relative_rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HostEffect:
    """``host`` names the machines of a run; None where the log does not identify them. ``mean_rate`` is relative."""

    host: str | None
    instance: str
    trials: tuple[HostTrial, ...]

    @property
    def mean_rate(self) -> float:
        return exp(fmean([log(trial.relative_rate) for trial in self.trials]))


def find_host_effects(results: Sequence[RunResult]) -> tuple[HostEffect, ...]:
    """The slowest host first. Only cells with at least two measured trials count: one trial has nothing to compare
    with.
    """
    by_cell: dict[str, list[tuple[RunResult, float]]] = {}
    for result in results:
        rate = result.samples_per_second
        if rate and is_measured(result):
            by_cell.setdefault(result.run.cell.cell_id, []).append((result, rate))
    by_host: dict[tuple[str, str | None], list[HostTrial]] = {}
    for trials in by_cell.values():
        if len(trials) < 2:
            continue
        mean = exp(fmean([log(rate) for _, rate in trials]))
        for result, rate in trials:
            trial = HostTrial(run_id=result.run.run_id, label=result.run.cell.label, relative_rate=rate / mean)
            by_host.setdefault((result.run.cell.settings.instance, _name(result)), []).append(trial)
    effects = [
        HostEffect(host=host, instance=instance, trials=tuple(trials)) for (instance, host), trials in by_host.items()
    ]
    return tuple(sorted(effects, key=lambda effect: effect.mean_rate))


def _name(result: RunResult) -> str | None:
    hosts = hosts_of(result)
    return " ".join(sorted(hosts)) if hosts else None
