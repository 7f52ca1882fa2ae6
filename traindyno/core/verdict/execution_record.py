"""The stored data of an execution: the suite as it was accepted, its cells and the results of its runs."""

from dataclasses import dataclass

from traindyno.core.measurement.loss_parity import LossSpread
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.hosts import HostPriors
from traindyno.core.suite.suite import Cell, Suite


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRecord:
    execution_id: str
    suite: Suite
    cells: tuple[Cell, ...]
    results: tuple[RunResult, ...]
    loss_spread: LossSpread | None = None
    host_priors: HostPriors | None = None
