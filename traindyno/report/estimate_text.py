"""An estimate with its interval, as two lines of a table cell."""

from collections.abc import Callable

from traindyno.core.costs.quantity_text import UNKNOWN, interval_text
from traindyno.core.statistics.estimates import Estimate
from traindyno.report.markup import Markup, element, join


def estimate_cell(estimate: Estimate | None, value_text: Callable[[float], str]) -> Markup:
    if estimate is None:
        return element("span", "–", class_="absent", title="not measured")
    interval = estimate.interval
    spread = interval_text(interval.low, interval.high, value_text) if interval else f"interval {UNKNOWN}"
    return join(value_text(estimate.mean), element("small", spread))
