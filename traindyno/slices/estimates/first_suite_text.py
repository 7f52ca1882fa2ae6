"""The proposed suite as a file, and the estimates of its cells as people read them."""

from dataclasses import asdict, fields
from functools import partial
from typing import Any

from traindyno.api.suite_text import write_yaml
from traindyno.core.costs.prices import PriceList
from traindyno.core.costs.quantity_text import (
    UNKNOWN,
    bytes_text,
    interval_text,
    seconds_text,
    usd_text,
)
from traindyno.slices.estimates.candidates import (
    NO_BASIS,
    Candidate,
)
from traindyno.slices.estimates.first_suite import Proposal
from traindyno.slices.estimates.suite import CellEstimate

SCRIPT_NOTE = (
    "# To compare arguments of the program, add a list of values: matrix: {hyperparameters.NAME: "
    "[1, 2]}."
)
KEPT_NOTE = (
    "# Reports and `list --projected` compare these with what was measured; delete them for "
    "another model."
)
ESTIMATES_NOTE = (
    "# Estimates order the cells, and the suite measures them: 90 % intervals, of training "
    "without a job's start."
)
NOT_ESTIMATED = "not estimated: plan does it"
UNKNOWN_DEVICE = "not estimated: the device's is unknown"


def token_figures(candidate: Candidate, tokens: int) -> dict[str, float | None]:
    """Tokens per second, and dollars per billion tokens.

    ``tokens`` are of the whole work.
    """
    seconds = candidate.seconds
    usd = candidate.usd
    return {
        "tokens_per_second": tokens / seconds.mean if seconds is not None and tokens else None,
        "usd_per_billion_tokens": usd.mean / tokens * 1e9 if usd is not None and tokens else None,
    }


def estimate_texts(candidate: Candidate, prices: PriceList) -> dict[str, str]:
    """Memory, time and cost with their intervals, as a person reads them.

    Without an estimate, the texts have the memory of a device, and the price.
    """
    memory = candidate.memory_bytes
    device = candidate.device_bytes
    texts = {"memory": NOT_ESTIMATED, "time": UNKNOWN, "cost": UNKNOWN}
    if device is None:
        texts["memory"] = UNKNOWN_DEVICE
    elif candidate.evidence == NO_BASIS:
        texts["memory"] = f"{UNKNOWN} of {bytes_text(device)}"
    if price := prices.get(candidate.settings.instance):
        texts["cost"] += f", {usd_text(price.usd_per_hour * candidate.settings.instance_count)}/h"
    if memory is not None:
        room = "" if device is None else f" of {bytes_text(device)}"
        texts["memory"] = (
            f"{bytes_text(round(memory.mean))} ({bytes_text(round(memory.high))} at most){room}"
        )
    if candidate.seconds is not None:
        estimate = candidate.seconds
        interval = interval_text(estimate.low, estimate.high, seconds_text)
        texts["time"] = f"{seconds_text(estimate.mean)} ({interval})"
    if candidate.usd is not None:
        estimate = candidate.usd
        interval = interval_text(estimate.low, estimate.high, usd_text)
        texts["cost"] = f"{usd_text(estimate.mean)} ({interval})"
    return texts


def suite_text(proposal: Proposal) -> str:
    """The suite file, with the estimates of each cell beside it."""
    document = dict(proposal.document)
    included = document.pop("include", [])
    first, *others = proposal.cells
    why = proposal.why_unknown
    lines = [f"# No estimates: {why}." if why else ESTIMATES_NOTE, *_yaml(document)]
    comment = partial(_comment, prices=proposal.inputs.prices)
    if included:
        lines += [f"# The matrix is the cell to compare with: {comment(first)}", "include:"]
        for settings, candidate in zip(included, others, strict=True):
            lines += [f"  # {comment(candidate)}", *(f"  {line}" for line in _yaml([settings]))]
    elif document.get("source"):
        lines.append(SCRIPT_NOTE)
    kept = [
        (cell.cell_id, _kept(candidate))
        for cell, candidate in zip(proposal.plan.cells, proposal.cells, strict=True)
    ]
    if any(estimate for _, estimate in kept):
        workload = proposal.suite.suite.workload
        of = {"examples": workload.examples, "sequence_length": workload.sequence_length}
        lines += [
            KEPT_NOTE,
            "estimates:",
            *(f"  {line}" for line in _yaml({**of, "cells": dict(kept)})),
        ]
    return "\n".join(lines) + "\n"


def _kept(candidate: Candidate) -> dict[str, Any]:
    """The document of a CellEstimate; empty where nothing is known."""
    figures = {column.name: getattr(candidate, column.name) for column in fields(CellEstimate)}
    return {
        name: {end: float(f"{value:.4g}") for end, value in asdict(estimate).items()}
        for name, estimate in figures.items()
        if estimate is not None
    }


def _yaml(value: Any) -> list[str]:
    return write_yaml(value, default_flow_style=None, width=1000).splitlines()


def _comment(candidate: Candidate, prices: PriceList) -> str:
    texts = estimate_texts(candidate, prices)
    return (
        f"memory {texts['memory']}, time {texts['time']}, cost {texts['cost']}; "
        f"{candidate.evidence}"
    )
