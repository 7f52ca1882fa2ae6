"""What a step of each cell consists of: a part of the section of the time."""

from traindyno.core.costs.quantity_text import UNKNOWN, seconds_text, share_text
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.slow_steps import (
    CellSteps,
    StepShares,
    divide_step,
    is_wait_named,
    share_of_step_text,
    wait_share,
)
from traindyno.report.markup import Markup, columns, draw_table, element, join

MOST_ROWS = 20
COLUMNS = columns(
    *(
        "Cell",
        "# Step",
        "# Waiting",
        "# Data",
        "# Communication",
        "# Optimizer",
        "# Rest",
        "# Start-up",
    ),
    explained={
        "Step": "mean time of a step without checkpoints, evaluation and stalls",
        "Waiting": "for data, by the step log, the mean of the processes",
        "Data": "what a step would lose without its loader",
        "Communication": "exchange of gradients that nothing hides",
        "Rest": "forward and backward pass, and parts without a figure",
        "Start-up": "paid once",
    },
)
CAPTION = (
    "Shares of a step, with 95 % intervals. Data, communication, optimizer and the rest are 100 % "
    "together. They are differences between probes after the run (measurement.probes); cells "
    "without probes have the wait for data only. Noise: the probes can't tell the part from "
    "nothing. The best 20 cells at most."
)


def draw_slow_steps(report: Report) -> Markup | None:
    """None where no cell was probed or waits for data."""
    rows = []
    for row in report.verdict.ranked_rows:
        parts = row.part(CellSteps).step_parts
        if parts and (parts.is_probed or is_wait_named(parts)):
            shares = divide_step(parts)
            told = [UNKNOWN] * 4
            if shares is not None:
                told = [
                    *(_text(name, shares) for name in shares.parts),
                    share_of_step_text(shares.rest),
                ]
            waiting = share_of_step_text(wait_share(parts))
            overhead = seconds_text(row.time.overhead_seconds)
            rows.append([row.label, seconds_text(parts.step.mean), waiting, *told, overhead])
    return (
        join(element("h3", "Why slow"), draw_table(COLUMNS, rows[:MOST_ROWS], caption=CAPTION))
        if rows
        else None
    )


def _text(part: str, shares: StepShares) -> str:
    share = shares.parts[part]
    if share is None:
        return UNKNOWN
    is_noise = part in shares.noise
    return (
        f"noise (± {share_text(share.half_width, digits=0)})"
        if is_noise
        else share_of_step_text(share)
    )
