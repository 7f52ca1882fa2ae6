"""The results of an execution as rows, one for each run."""

import html
import importlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import Enum
from typing import Any, overload

from traindyno.core.documents.problems import visible
from traindyno.core.errors import TraindynoError
from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.verdict.axes import find_axes, value_of
from traindyno.core.verdict.report_data import Report
from traindyno.core.verdict.summarise import summarise

SHOWN = ("cell_label", "trial", "outcome", "samples_per_second", "job_seconds", "message")


class PandasMissing(TraindynoError):
    """A frame was asked for, and pandas is not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRow:
    """``summary`` is what was measured of the run; ``settings`` has the values of the settings that vary."""

    summary: RunSummary
    settings: Mapping[str, Any]

    def flat(self) -> dict[str, Any]:
        """One mapping of both, without enums: a row of a table."""
        measured = {name: each.value if isinstance(each, Enum) else each for name, each in asdict(self.summary).items()}
        return {**measured, **self.settings}


class Results(Sequence[ResultRow]):
    """The rows of the runs, by cell and trial. A notebook shows them as a table."""

    def __init__(self, rows: Sequence[ResultRow]) -> None:
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, index: int) -> ResultRow: ...

    @overload
    def __getitem__(self, index: slice) -> "Results": ...

    def __getitem__(self, index: int | slice) -> "ResultRow | Results":
        return Results(self._rows[index]) if isinstance(index, slice) else self._rows[index]

    def __len__(self) -> int:
        return len(self._rows)

    def frame(self) -> Any:
        """A pandas data frame with a row for each run. Raises PandasMissing."""
        try:
            pandas = importlib.import_module("pandas")
        except ImportError as error:
            raise PandasMissing("a frame needs pandas, which is not installed; the rows are a sequence") from error
        return pandas.DataFrame([row.flat() for row in self._rows], columns=self._columns())

    def _columns(self) -> list[str]:
        varying = dict.fromkeys(name for row in self._rows for name in row.settings)
        return [*(each.name for each in fields(RunSummary)), *varying]

    def __repr__(self) -> str:
        return "\n".join(" ".join(cells) for cells in self._shown())

    def _repr_html_(self) -> str:
        heading, *rows = ["".join(f"<td>{html.escape(text)}</td>" for text in cells) for cells in self._shown()]
        lines = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{heading.replace('td>', 'th>')}</tr></thead><tbody>{lines}</tbody></table>"

    def _shown(self) -> Iterator[list[str]]:
        yield [name.replace("_", " ") for name in SHOWN]
        for row in self._rows:
            values = row.flat()
            yield [_text(values[name]) for name in SHOWN]


def results_of(report: Report) -> Results:
    axes = [axis.name for axis in find_axes(report.cells)]
    return Results(
        [
            ResultRow(summary=summarise(result), settings={name: value_of(result.run.cell, name) for name in axes})
            for result in report.results
        ]
    )


def _text(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else visible(str(value))
