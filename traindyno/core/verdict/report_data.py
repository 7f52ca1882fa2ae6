"""Everything that a report shows, as one document: the verdict, its runs and their origin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, TypeVar

from traindyno.core.documents.stored import from_document, to_document
from traindyno.core.documents.versions import Format
from traindyno.core.measurement.loss_curve import LossCurve
from traindyno.core.measurement.run_result import (
    PreparationResult,
    RunResult,
    parse_preparation_result,
    parse_run_result,
    preparation_result_document,
    run_result_document,
)
from traindyno.core.suite.cells import Cell
from traindyno.core.suite.suite import Suite
from traindyno.core.suite.suite_file import read_stored_suite, stored_suite
from traindyno.core.verdict.verdict import Verdict, parse_verdict, verdict_document

LOSS_POINTS_IN_ALL = 20_000
FEWEST_POINTS = 10

Value = TypeVar("Value")
REPORT = Format(name="report data", version=1)


def _downsample(result: RunResult, *, loss_points: int) -> RunResult:
    measured = result.measured
    if measured is None:
        return result
    loss = downsample_loss(measured.loss, loss_points)
    points = (
        replace(point, loss=_five_digits(point.loss), seconds=_five_digits(point.seconds))
        for point in loss.points
    )
    loss = replace(loss, points=tuple(points))
    return replace(result, measured=replace(measured, loss=loss))


def _five_digits(value: float) -> float:
    return float(f"{value:.5g}")


def downsample_loss(loss: LossCurve, most: int) -> LossCurve:
    if len(loss.points) <= most:
        return loss
    if most < FEWEST_POINTS:
        return replace(loss, points=())
    stride = -(-len(loss.points) // most)
    points = []
    for begin in range(0, len(loss.points), stride):
        chunk = loss.points[begin : begin + stride]
        steps = sum(point.steps for point in chunk)
        mean = sum(point.loss * point.steps for point in chunk) / steps
        points.append(replace(chunk[-1], steps=steps, loss=mean))
    return replace(loss, points=tuple(points))


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """All that a report shows of an execution.

    ``created_at`` is in epoch seconds. ``facts`` are the lab's own: version, region, stack.
    ``parts`` has by name the documents that a slice added, which ``part`` reads.
    """

    execution_id: str
    created_at: float
    suite: Suite
    cells: tuple[Cell, ...]
    verdict: Verdict
    results: tuple[RunResult, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    #: The results of the jobs that tokenised the data; the receipt lists their costs.
    preparations: tuple[PreparationResult, ...] = ()
    parts: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)

    @property
    def is_simulated(self) -> bool:
        return any(result.is_simulated for result in self.results)

    def part(self, name: str, kind: type[Value]) -> tuple[Value, ...]:
        return tuple(from_document(part, kind) for part in self.parts.get(name, ()))


def shown_results(cells: Sequence[Cell], results: Sequence[RunResult]) -> tuple[RunResult, ...]:
    """In the order of the cells, as a report holds them.

    Each run gets an equal share of the points that a report holds; none if the share is below 10
    points.
    """
    order = {cell.cell_id: index for index, cell in enumerate(cells)}
    share = max(1, len(results))
    loss_points = LOSS_POINTS_IN_ALL // share
    ranked = sorted(
        results,
        key=lambda result: (order.get(result.run.cell.cell_id, len(order)), result.run.trial),
    )
    return tuple(_downsample(result, loss_points=loss_points) for result in ranked)


def report_document(report: Report) -> dict[str, Any]:
    document = {
        "execution_id": report.execution_id,
        "created_at": report.created_at,
        "suite": stored_suite(report.suite),
        "cells": to_document(report.cells),
        "verdict": verdict_document(report.verdict),
        "results": [run_result_document(result) for result in report.results],
        "facts": dict(report.facts),
        "preparations": [preparation_result_document(result) for result in report.preparations],
    }
    return REPORT.mark({**document, **report.parts})


def parse_report(stored: Mapping[str, Any]) -> Report:
    """Raises VersionUnknown."""
    document = REPORT.read(stored)
    return Report(
        execution_id=document["execution_id"],
        created_at=document["created_at"],
        suite=read_stored_suite(document["suite"]),
        cells=tuple(from_document(cell, Cell) for cell in document["cells"]),
        verdict=parse_verdict(document["verdict"]),
        results=tuple(parse_run_result(result) for result in document["results"]),
        facts=document["facts"],
        preparations=tuple(
            parse_preparation_result(result) for result in document.get("preparations", ())
        ),
        parts={
            name: document[name]
            for name in document.keys() - {field.name for field in fields(Report)}
        },
    )
