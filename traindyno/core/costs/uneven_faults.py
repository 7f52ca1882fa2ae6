"""Faults of the service that hit one cell of a type more often than chance explains: they may be the cell's own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from traindyno.core.costs.hazard import HazardKey, ended_by_fault, hazard_key, instance_hours
from traindyno.core.measurement.run_result import RunResult
from traindyno.core.statistics.many_comparisons import SIGNIFICANCE
from traindyno.core.statistics.student_t import incomplete_beta


@dataclass(frozen=True, slots=True, kw_only=True)
class UnevenFaults:
    """``count`` of the ``all_count`` faults of a type hit this cell, which has this share of the hours of the type.

    ``p``: the probability of so many or more, if faults are alike on all cells of the type.
    """

    count: int
    all_count: int
    hours_share: float
    p: float


def find_uneven_faults(cells: Mapping[str, Sequence[RunResult]]) -> dict[str, UnevenFaults]:
    """By cell id, of the ``cells`` whose faults may be their own.

    The faults of a type fall on its cells by their instance-hours: the number of one cell is binomial (Przyborowski and
    Wilenski 1940). A single fault hits some cell in any case. Nevertheless, if a cell alone has faults and one of them
    left no measurement of its trial, what this trial would have shown is unknown.
    """
    by_type: dict[HazardKey, dict[str, list[RunResult]]] = {}
    for cell_id, results in cells.items():
        for result in results:
            by_type.setdefault(hazard_key(result), {}).setdefault(cell_id, []).append(result)
    return {cell_id: found for alike in by_type.values() for cell_id, found in _of_one_type(alike)}


def _of_one_type(cells: Mapping[str, Sequence[RunResult]]) -> Iterator[tuple[str, UnevenFaults]]:
    counts = {cell_id: sum(map(_count_faults, results)) for cell_id, results in cells.items()}
    hours = {cell_id: sum(map(instance_hours, results)) for cell_id, results in cells.items()}
    all_count, all_hours = sum(counts.values()), sum(hours.values())
    for cell_id, count in counts.items():
        if not count or hours[cell_id] >= all_hours:
            continue
        share = hours[cell_id] / all_hours
        p = incomplete_beta(count, all_count - count + 1, share)
        is_uneven = count > 1 and p < SIGNIFICANCE
        if is_uneven or (count == all_count and _loses_a_trial(cells[cell_id])):
            yield cell_id, UnevenFaults(count=count, all_count=all_count, hours_share=share, p=p)


def _loses_a_trial(results: Sequence[RunResult]) -> bool:
    return any(_count_faults(result) and result.measured is None for result in results)


def _count_faults(result: RunResult) -> int:
    return sum(ended_by_fault(result, attempt) for attempt in result.attempts)
