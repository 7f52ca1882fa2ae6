"""A finding from anybody's table of trials: ``traindyno.judge`` and the command of that name."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise
from typing import Any

from traindyno.api.trial_rows import TrialColumns, TrialsInvalid, trials_of
from traindyno.figures.judge import TrialsFinding, judge_trials

MONEY = frozenset(
    ["usd", "dollar", "dollars", "eur", "euro", "euros", "cents", "cost", "costs", "price"]
)
#: Words before any "per" that make a column a cost, of which less is better: seconds per step.
COSTS = MONEY | {
    "microseconds",
    "ms",
    "msec",
    "milliseconds",
    "sec",
    "secs",
    "second",
    "seconds",
    "mins",
    "minute",
    "minutes",
    "hrs",
    "hour",
    "hours",
    "days",
    "time",
    "latency",
    "duration",
    "energy",
    "joule",
    "joules",
    "memory",
    "loss",
    "perplexity",
    "error",
}
#: Costs only before a "per": us_per_token, but not us_east_tokens_per_second or min_throughput.
SHORT_COSTS = frozenset(["ns", "us", "s", "min", "hr", "h"])
#: Names of which more is better, as of anything else per something: tokens per second.
RATES = frozenset(
    [
        "throughput",
        "rate",
        "speed",
        "speedup",
        "bandwidth",
        "mfu",
        "hfu",
        "flops",
        "tflops",
        "accuracy",
        "utilization",
        "utilisation",
        "fps",
        "qps",
        "tps",
    ]
)
PER = "per"
#: Before one of ``UNITS`` they are a rate without a "per": tokens_sec. A step_s is a time.
COUNTED = frozenset(
    [
        "samples",
        "tokens",
        "tok",
        "images",
        "img",
        "steps",
        "sequences",
        "iterations",
        "it",
        "examples",
        "rows",
    ]
)
UNITS = frozenset(["s", "sec", "second", "minute", "hour"])
#: Where a word begins in samplesPerSecond and in USDPerRun.
WORD_BEGINS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=Per[A-Z\d])")
MOST_TOLERANCE = 0.5


class Better(StrEnum):
    LESS = "less"
    GREATER = "greater"


def better_of(value: str) -> Better:
    """Whether less or more is better, by the name of a column.

    More is better for ``tokens_per_second``; less for ``seconds``, ``seconds_per_step`` and every
    name that says neither.
    """
    amount = _amount(value)
    is_per = len(amount) < len(_words(value))
    if COSTS.intersection(amount) or (is_per and amount[-1] in SHORT_COSTS):
        return Better.LESS
    is_rate = is_per or not RATES.isdisjoint(amount)
    return Better.GREATER if is_rate else Better.LESS


def is_money(value: str) -> bool:
    """Whether a column is money, or work per money, by its name."""
    return not MONEY.isdisjoint(_words(value))


def _words(value: str) -> list[str]:
    words = re.findall(r"[a-z]+", WORD_BEGINS.sub(" ", value).replace("/", f" {PER} ").lower())
    for place, (counted, unit) in enumerate(pairwise(words), start=1):
        if counted in COUNTED and unit in UNITS:
            return [*words[:place], PER, *words[place:]]
    return words


def _amount(value: str) -> list[str]:
    """The words before "per", which is not the first word: a per_step_time is a time."""
    words = _words(value)
    return words[: words.index(PER, 1)] if PER in words[1:] else words


def judge(
    rows: Any,
    *,
    value: str,
    cell: str | Sequence[str],
    block: str | None = None,
    host: str | None = None,
    order: str | None = None,
    better: str | None = None,
    tolerance: float = 0.02,
) -> TrialsFinding:
    """Which cell is best, by how much, and how sure that is, from trials that ran anywhere.

    The method is that of the lab's verdicts (docs/method.md): means of logarithms, ratios with
    their intervals, selection of the best among equals taken into account. If trials are
    independent, what is claimed is wrong in at most 5 of 100 tables.

    Args:
        rows: a data frame (pandas, polars, pyarrow), or a list of dicts; a row for each trial.
        value: the column with what was measured, above 0, in any one unit: seconds, tokens per
            second, USD. Whole numbers, such as of epochs, are known to half a step.
        cell: the column that names the configuration, or several that name it together.
        block: the column of what trials of different cells share, such as a day or a node's
            reservation; what blocks have in common is removed.
        host: the column of the machine; of several machines, their names with spaces between.
        order: the column of when a trial ran: numbers, or dates such as 2026-11-29 10:30.
            Successive trials may be correlated, which counts only if their order is known.
        better: "less" or "greater"; by default as the name of ``value`` suggests.
        tolerance: a cell that is worse by no more than this share is as good.

    Returns:
        The finding: ``claim``, ``cells`` with the best first, each with its mean, its interval and
        its change against the best, and ``to_decide``. ``finding_text`` says it in sentences.

    Raises:
        TrialsInvalid: rows that can't be compared, with the row, the column and what is expected.
    """
    names = (cell,) if isinstance(cell, str) else tuple(cell)
    columns = TrialColumns(value=value, cell=names, block=block, host=host, order=order)
    return judge_table(as_rows(rows), columns, better=better, tolerance=tolerance)


def judge_table(
    rows: Sequence[Mapping[str, Any]],
    columns: TrialColumns,
    *,
    better: str | None,
    tolerance: float,
) -> TrialsFinding:
    """Raises TrialsInvalid."""
    if better is not None and better not in tuple(Better):
        raise TrialsInvalid(f"better: got {better!r}, expected less or greater")
    if not 0 <= tolerance <= MOST_TOLERANCE:
        raise TrialsInvalid(f"tolerance: got {tolerance}, expected 0 to {MOST_TOLERANCE}")
    table = trials_of(rows, columns)
    is_rate = (better or better_of(columns.value)) == Better.GREATER
    finding = judge_trials(
        table.trials,
        is_rate=is_rate,
        is_ordered=columns.order is not None,
        resolution=table.resolution,
        tolerance=tolerance,
    )
    return replace(finding, unit=table.unit)


def as_rows(rows: Any) -> Sequence[Mapping[str, Any]]:
    """Rows of a data frame, whichever library made it. Raises TrialsInvalid."""
    for method, arguments in (("to_pylist", ()), ("to_dicts", ()), ("to_dict", ("records",))):
        if not isinstance(rows, Mapping) and hasattr(rows, method):
            rows = getattr(rows, method)(*arguments)
            break
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise TrialsInvalid(
            f"rows: got {type(rows).__name__}, expected a data frame or a list of dicts"
        )
    listed = list(rows)
    for number, row in enumerate(listed, start=1):
        if not isinstance(row, Mapping):
            raise TrialsInvalid(f"row {number}: got {type(row).__name__}, expected a dict")
    return listed
