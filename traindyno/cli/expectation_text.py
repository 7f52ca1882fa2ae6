"""What a plan expects, in words: never a figure without what it rests on."""

from traindyno.core.costs.prices import SECONDS_PER_HOUR
from traindyno.core.costs.quantity_text import UNKNOWN, count_text, seconds_text, usd_text
from traindyno.core.planning.expectation import Expectation


def expected_cost_text(expected: Expectation, *, why_none: str | None) -> str:
    if expected.usd is not None:
        return f"{usd_text(expected.usd)} expected, {basis_text(expected)}"
    if expected.known_cells == 0:
        return f"{UNKNOWN} what to expect: {why_none or 'no run of these cells has been measured yet'}"
    missing = expected.cells - expected.known_cells
    if not missing:
        return f"{UNKNOWN} what to expect: not every price is known"
    return (
        f"{UNKNOWN} what to expect: {missing} of {expected.cells} cells were never measured;"
        f" {usd_text(expected.usd_of_known)} for the others, {basis_text(expected)}"
    )


def expected_time_text(expected: Expectation) -> str | None:
    if expected.hours is None:
        return None
    return f"{seconds_text(float(expected.hours) * SECONDS_PER_HOUR)} expected, {basis_text(expected)}"


def basis_text(expected: Expectation) -> str:
    runs = "1 earlier run" if expected.past_runs == 1 else f"{count_text(expected.past_runs)} earlier runs"
    return f"from {runs} of these cells{' (simulated)' if expected.is_simulated else ''}"
