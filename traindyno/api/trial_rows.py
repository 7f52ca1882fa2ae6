"""Trials from the rows of a table, which anybody may have written."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from traindyno.core.documents.problems import close_to, refusal, shown
from traindyno.core.errors import TraindynoError
from traindyno.figures.trials import Trial

NUMBER = re.compile(
    r"\s*(?P<number>[+-]?((\d+|[1-9]\d{0,2}(,\d{3})+)(\.\d*)?|\.\d+)([eE][+-]?\d+)?)"
    r"\s*(?P<unit>[^\W\d_][^\s\d.,]{0,20}|%|\$)?\s*"
)
NOT_FINITE = frozenset({"nan", "inf", "+inf", "-inf", "infinity", "-infinity"})
MOST_NAMED = 20
# Further from 1, a square is no float any more.
LEAST = 1e-100
MOST = 1e100
JOINT = " · "


class TrialsInvalid(TraindynoError):
    """The rows hold no trials that can be compared; the message says which and what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialColumns:
    """The columns of a table of trials.

    Several columns of ``cell`` name a cell together. ``block`` has what trials of different cells
    share, such as a day, ``host`` the machine, or several joined by spaces, and ``order`` when a
    trial ran.
    """

    value: str
    cell: tuple[str, ...]
    block: str | None = None
    host: str | None = None
    order: str | None = None

    @property
    def named(self) -> tuple[str, ...]:
        optional = [name for name in (self.block, self.host, self.order) if name is not None]
        return (self.value, *self.cell, *optional)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialTable:
    """Trials by cell, in the order in which they ran or stand.

    ``unit`` is the unit in the values' texts. ``resolution`` is the last decimal that any value
    has, such as 0.01.
    """

    trials: Mapping[str, tuple[Trial, ...]]
    unit: str | None
    resolution: float


def trials_of(rows: Sequence[Mapping[str, Any]], columns: TrialColumns) -> TrialTable:
    """The trials of a table, one row each; rows are counted from 1. Raises TrialsInvalid."""
    if not rows:
        raise TrialsInvalid("the table has no row, expected one for each trial")
    _require_columns(rows, columns)
    _refuse_equal_rows(rows)
    values = [_value(row, number, columns.value) for number, row in enumerate(rows, start=1)]
    _refuse_open_comma([str(row.get(columns.value)).strip() for row in rows], columns.value)
    unit = _one_unit([value.unit for value in values], columns.value)
    places: Sequence[int] = range(len(rows))
    if columns.order is not None:
        places = _in_order(rows, columns.order)
    trials: dict[str, list[Trial]] = {}
    for place in places:
        row = rows[place]
        number = place + 1
        names = [_text(row, number, name) for name in columns.cell]
        block = f"row {number}" if columns.block is None else _text(row, number, columns.block)
        # a block stands for hosts that are unknown: its trials are no draws of their own
        hosts = None if columns.block is None else frozenset([block])
        if columns.host is not None:
            hosts = frozenset(_hosts(row, number, columns.host))
        trial = Trial(value=values[place].number, hosts=hosts, block=block)
        trials.setdefault(JOINT.join(names), []).append(trial)
    _require_scatter(trials, columns)
    return TrialTable(
        trials={cell: tuple(own) for cell, own in trials.items()},
        unit=unit,
        resolution=10.0 ** -max(value.decimals for value in values),
    )


def _require_columns(rows: Sequence[Mapping[str, Any]], columns: TrialColumns) -> None:
    present = list(dict.fromkeys(str(name) for row in rows for name in row))
    for name in columns.named:
        if name not in present:
            listed = ", ".join(present[:MOST_NAMED])
            expected = f"one of {listed}{', …' if len(present) > MOST_NAMED else ''}"
            raise TrialsInvalid(
                refusal(f"the table has no column {shown(name)}", expected, close_to(name, present))
            )
    twice = [name for name in columns.named if columns.named.count(name) > 1]
    if twice:
        raise TrialsInvalid(
            f"column {shown(twice[0])} is named for two purposes, expected a column for each"
        )


def _refuse_equal_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    first: dict[tuple[tuple[str, str], ...], int] = {}
    for number, row in enumerate(rows, start=1):
        key = tuple((str(name), repr(value)) for name, value in row.items())
        if key in first:
            raise TrialsInvalid(
                f"rows {first[key]} and {number} are equal in all columns, expected a row for each "
                "trial: leave out copies, or add a column that numbers the trials"
            )
        first[key] = number


def _in_order(rows: Sequence[Mapping[str, Any]], column: str) -> list[int]:
    """The places of the rows by numbers or by dates. Texts of other dates don't sort in time."""
    moments = []
    kinds = []
    for number, row in enumerate(rows, start=1):
        text = _text(row, number, column)
        try:
            kind, moment = _moment(text)
        except ValueError:
            raise TrialsInvalid(
                f"row {number}, column {shown(column)}: got {shown(text)}, expected numbers or "
                "dates such as 2026-11-29 10:30"
            ) from None
        kinds.append(kind)
        moments.append(moment)
        if kind != kinds[0]:
            raise TrialsInvalid(
                f"row {number}, column {shown(column)}: got {kind}, {shown(text)}; expected "
                f"{kinds[0]}, as in row 1"
            )
    return sorted(range(len(rows)), key=moments.__getitem__)


def _moment(text: str) -> tuple[str, Any]:
    """What sorts, and its kind."""
    try:
        return "a number", float(text)
    except ValueError:
        date = datetime.fromisoformat(text)
    return f"a date {'without' if date.tzinfo is None else 'with'} a time zone", date


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    """A number above 0, how many decimals it is written with, and the unit of its text."""

    number: float
    decimals: int
    unit: str | None


def _value(row: Mapping[str, Any], number: int, column: str) -> _Value:
    cell = row.get(column)
    expected = "a number above 0"
    where = f"row {number}, column {shown(column)}"
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        raise TrialsInvalid(f"{where}: got nothing, expected {expected}")
    unit = None
    value = cell
    if isinstance(cell, str) and cell.strip().lower() not in NOT_FINITE:
        match = NUMBER.fullmatch(cell)
        if match is None:
            raise TrialsInvalid(f"{where}: got {shown(cell)}, expected {expected}")
        value = match["number"].replace(",", "")
        unit = match["unit"]
    try:
        parsed = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        raise TrialsInvalid(f"{where}: got {shown(cell)}, expected {expected}") from None
    if not math.isfinite(parsed) or parsed <= 0:
        raise TrialsInvalid(
            f"{where}: got {shown(cell)}, expected {expected}: values are compared as ratios"
        )
    if not LEAST <= parsed <= MOST:
        raise TrialsInvalid(f"{where}: got {shown(cell)}, expected a number from {LEAST} to {MOST}")
    written = Decimal(value) if isinstance(value, str) else Decimal(repr(parsed)).normalize()
    exponent = written.as_tuple().exponent
    return _Value(
        number=parsed,
        decimals=max(0, -exponent) if isinstance(exponent, int) else 0,
        unit=unit,
    )


def _refuse_open_comma(texts: Sequence[str], column: str) -> None:
    """Of 1,234 only another value, as 1,234.5 or 1,234,567, says what its comma is."""
    with_comma = [text for text in texts if "," in text]
    if not with_comma or any("." in text or text.count(",") > 1 for text in with_comma):
        return
    first = with_comma[0]
    raise TrialsInvalid(
        f"row {texts.index(first) + 1}, column {shown(column)}: got {shown(first)}, which may be "
        f"{first.replace(',', '')} or {first.replace(',', '.')}; expected a number without a comma"
    )


def _one_unit(units: Sequence[str | None], column: str) -> str | None:
    if len(set(units)) > 1:
        other = next(number for number, unit in enumerate(units) if unit != units[0])
        raise TrialsInvalid(
            f"column {shown(column)} has more than one unit: {units[0] or 'none'} in row 1, "
            f"{units[other] or 'none'} in row {other + 1}; expected one"
        )
    return units[0]


def _text(row: Mapping[str, Any], number: int, column: str) -> str:
    cell = row.get(column)
    text = "" if cell is None else str(cell).strip()
    if not text or text.lower() == "nan":
        raise TrialsInvalid(f"row {number}, column {shown(column)}: got nothing, expected a name")
    return text


def _hosts(row: Mapping[str, Any], number: int, column: str) -> list[str]:
    """The machines of a trial. ``node 1`` is refused, since ``node 2`` would share one with it."""
    text = _text(row, number, column)
    names = text.split()
    if len({name.isdecimal() for name in names}) > 1:
        raise TrialsInvalid(
            f"row {number}, column {shown(column)}: got {shown(text)}, expected a machine's name "
            "without a space, or several with spaces between them"
        )
    return names


def _require_scatter(trials: Mapping[str, Sequence[Trial]], columns: TrialColumns) -> None:
    name = " and ".join(columns.cell)
    if len(trials) < 2:
        raise TrialsInvalid(
            f"the trials are of one cell, {next(iter(trials))}; "
            f"expected two values of {name} or more"
        )
    if all(len(own) == 1 for own in trials.values()):
        raise TrialsInvalid(
            f"each of the {len(trials)} cells has one trial, so that nothing tells how far trials "
            f"scatter; expected two rows or more with the same {name}"
        )
