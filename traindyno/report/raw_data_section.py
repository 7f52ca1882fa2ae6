"""The report's data as one JSON document in the page, for download."""

import base64
import csv
import gzip
import io
import json
from dataclasses import asdict

from traindyno.core.verdict.report_data import Report, report_document
from traindyno.core.verdict.run_summary import RunSummary
from traindyno.report.markup import Markup, element

LARGEST_PLAIN_BYTES = 4 * 2**20


def draw_raw_data(report: Report) -> Markup:
    document = json.dumps(report_document(report), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in report.execution_id)
    return element(
        "section",
        element("h2", "Data"),
        element(
            "p",
            _download_json(document.encode(), name),
            " ",
            _download(_runs_csv(report).encode(), f"{name}-runs.csv", "text/csv;charset=utf-8", "Runs as CSV"),
        ),
        id="data",
    )


def _download_json(document: bytes, name: str) -> Markup:
    """Compressed if thousands of runs would make the page too large to open."""
    if len(document) <= LARGEST_PLAIN_BYTES:
        return _download(document, f"{name}.json", "application/json;charset=utf-8", "Everything as JSON")
    compressed = gzip.compress(document, mtime=0)
    return _download(compressed, f"{name}.json.gz", "application/gzip", "All data as compressed JSON")


def _download(content: bytes, name: str, kind: str, label: str) -> Markup:
    encoded = base64.b64encode(content).decode()
    return element("a", label, download=name, href=f"data:{kind};base64,{encoded}", class_="download")


def _runs_csv(report: Report) -> str:
    rows = [asdict(RunSummary.from_result(result)) for result in report.results]
    written = io.StringIO()
    writer = csv.DictWriter(written, fieldnames=list(rows[0]) if rows else ["run_id"], lineterminator="\n")
    writer.writeheader()
    writer.writerows([{name: _cell(value) for name, value in row.items()} for row in rows])
    return written.getvalue()


def _cell(value: object) -> object:
    """A spreadsheet treats text with one of these first characters as a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@")) else value
