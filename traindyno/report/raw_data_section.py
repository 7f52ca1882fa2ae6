"""The report's whole data as one JSON document inside the page, to save or to read on."""

import base64
import csv
import io
import json

from traindyno.core.report_data import Report, report_document
from traindyno.core.run_result import summary_row
from traindyno.report.markup import Markup, element


def draw_raw_data(report: Report) -> Markup:
    document = json.dumps(report_document(report), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in report.execution_id)
    return element(
        "section",
        element("h2", "Data"),
        element(
            "p",
            _download(document, f"{name}.json", "application/json", "Everything as JSON"),
            " ",
            _download(_runs_csv(report), f"{name}-runs.csv", "text/csv", "Runs as CSV"),
        ),
        id="data",
    )


def _download(content: str, name: str, kind: str, label: str) -> Markup:
    encoded = base64.b64encode(content.encode()).decode()
    return element("a", label, download=name, href=f"data:{kind};charset=utf-8;base64,{encoded}", class_="download")


def _runs_csv(report: Report) -> str:
    rows = [summary_row(result) for result in report.results]
    written = io.StringIO()
    writer = csv.DictWriter(written, fieldnames=list(rows[0]) if rows else ["run_id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows([{name: _cell(value) for name, value in row.items()} for row in rows])
    return written.getvalue()


def _cell(value: object) -> object:
    """A spreadsheet takes text that begins with one of these for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value
