"""What slices add to the data of a report and to the verdict in a terminal; all sections of a
report, in order.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from traindyno.core.costs.projected_actual import ProjectedActual
from traindyno.core.verdict.comparison import ExecutionRecord
from traindyno.core.verdict.report_data import Report
from traindyno.report.cells_section import draw_batches, draw_cells
from traindyno.report.learning_section import draw_learning_section
from traindyno.report.markup import Markup
from traindyno.report.provenance_section import draw_provenance, draw_raw_data, draw_receipt
from traindyno.report.runs_section import draw_runs
from traindyno.report.time_section import draw_time
from traindyno.report.verdict_section import draw_confounds
from traindyno.slices.claims import lab as claims
from traindyno.slices.estimates import report as estimates
from traindyno.slices.pricing import lab as pricing
from traindyno.slices.scaling import lab as scaling
from traindyno.slices.training import card
from traindyno.slices.training import report as training
from traindyno.store.results_bucket import ResultsBucket

REPORT_PARTS: Mapping[str, Callable[[ExecutionRecord], Sequence[Any]]] = {
    claims.PART: claims.claims_of,
    pricing.PART: pricing.price_options,
}
# Kept projections of an execution, or of its cells, with what came of them; the name is that of the
# part of the report.
PROJECTED: Mapping[str, Callable[[ResultsBucket, str], Iterator[ProjectedActual]]] = {
    estimates.PART: estimates.read_compared,
    training.PART: training.read_compared,
}
# What the lab writes into the bucket beside the report, when an execution is judged.
KEPT: Sequence[Callable[[ResultsBucket, str], None]] = [
    card.keep_card,
]
VERDICT_LINES: Sequence[Callable[[Report], Iterator[str]]] = [
    pricing.verdict_lines,
]
# The name in the list of sections, and what draws it; None where it has nothing to show.
SECTIONS: Mapping[str, tuple[str, Callable[[Report], Markup | None]]] = {
    "training": ("Projected and actual", training.draw_training),
    "estimates": ("Estimated and measured", estimates.draw_estimates),
    "cells": ("Cells", lambda report: draw_cells(report.verdict)),
    "pricing": ("Prices", pricing.draw_pricing),
    "scaling": ("Scaling", scaling.draw_scaling),
    "batches": ("Batches", draw_batches),
    "loss": ("Loss and quality", draw_learning_section),
    "time": ("Time", draw_time),
    "confounds": ("Confounds", draw_confounds),
    "claims": ("Claims", claims.draw_claims),
    "runs": ("Runs", draw_runs),
    "receipt": ("Receipt", draw_receipt),
    "provenance": ("Provenance", draw_provenance),
    "data": ("Data", draw_raw_data),
}
