"""The report's data as one JSON document in the page, and the runs as CSV, for download."""

import gzip
import json
from dataclasses import astuple, fields

from traindyno.core.jobs.run_summary import RunSummary
from traindyno.core.verdict.report_data import Report, report_document
from traindyno.core.verdict.summarise import summarise
from traindyno.report.download import csv_text, download
from traindyno.report.markup import Markup, element

LARGEST_PLAIN_BYTES = 2**18


def draw_raw_data(report: Report) -> Markup:
    document = json.dumps(report_document(report), separators=(",", ":"), allow_nan=False)
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in report.execution_id)
    return element(
        "section",
        element("h2", "Data"),
        element(
            "p",
            _download_json(document.encode(), name),
            " ",
            download(_runs_csv(report).encode(), f"{name}-runs.csv", "text/csv;charset=utf-8", "Runs as CSV"),
        ),
        id="data",
    )


def _download_json(document: bytes, name: str) -> Markup:
    """Compressed if hundreds of runs would make the page too large to open."""
    if len(document) <= LARGEST_PLAIN_BYTES:
        return download(document, f"{name}.json", "application/json;charset=utf-8", "Everything as JSON")
    compressed = gzip.compress(document, mtime=0)
    return download(compressed, f"{name}.json.gz", "application/gzip", "All data as compressed JSON")


def _runs_csv(report: Report) -> str:
    header = [field.name for field in fields(RunSummary)]
    return csv_text(header, [astuple(summarise(result)) for result in report.results])
