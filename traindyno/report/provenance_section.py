"""The conditions of the measurement: versions, hosts, images, prices and the suite itself."""

import gzip
import json
from collections.abc import Iterator
from datetime import UTC, datetime

from traindyno.core.costs.quantity_text import UNKNOWN, count_text, usd_text
from traindyno.core.suite.suite import Cell
from traindyno.core.suite.suite_file import suite_document
from traindyno.core.verdict.report_data import Report, report_document
from traindyno.core.verdict.summarise import RUN_COLUMNS, run_columns
from traindyno.report.markup import Markup, columns, csv_text, download, draw_table, element


def draw_provenance(report: Report) -> Markup:
    rows = [row for cell in report.cells for row in _cell_rows(report, cell)]
    return element(
        "section",
        element("h2", "Environment and provenance"),
        element(
            "dl",
            *(element("div", element("dt", name), element("dd", value)) for name, value in _report_rows(report)),
            class_="formulas",
        ),
        element(
            "details",
            element("summary", "Environment of every cell"),
            draw_table(
                columns("Cell", "Fact", "Value"),
                rows,
                caption="As reported by the processes; all values if trials differ.",
            ),
        ),
        element(
            "details",
            element("summary", "The suite"),
            element("pre", json.dumps(suite_document(report.suite), indent=2, ensure_ascii=False), tabindex=0),
        ),
        id="provenance",
    )


def _report_rows(report: Report) -> Iterator[tuple[str, str]]:
    yield "Suite", report.suite.name
    yield "Execution", report.execution_id
    yield "Written", datetime.fromtimestamp(report.created_at, UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield from report.facts.items()
    prices = set()
    for each in report.results:
        price, instance = each.price, each.run.cell.settings.instance
        known = ", ".join(filter(None, (price.purchase, price.region, price.date, price.source)))
        prices.add(f"{instance}: {usd_text(price.usd_per_instance_hour)} per hour{f' ({known})' if known else ''}")
    for line in sorted(prices):
        yield "Price", line
    for model in {each.measured.model for each in report.results if each.measured and each.measured.model}:
        per_token = UNKNOWN if model.flops_per_token is None else f"{model.flops_per_token:.4g}"
        formula = f" ({model.formula})" if model.formula else ""
        yield "Model", f"{count_text(model.parameters)} parameters, {per_token} FLOPs per token{formula}"


def _cell_rows(report: Report, cell: Cell) -> Iterator[list[str | None]]:
    results = [each for each in report.results if each.run.cell.cell_id == cell.cell_id]
    facts: dict[str, set[str]] = {}
    for environment in (each.environment for each in results if each.environment):
        own = {"processes": environment.world_size, "hosts": ", ".join(environment.hosts), **environment.facts}
        for name, value in own.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            facts.setdefault(name, set()).add(text)
    images = {attempt.image_uri for each in results for attempt in each.attempts if attempt.image_uri}
    for name, values in {**facts, **({"image": images} if images else {})}.items():
        yield [cell.label, name, "; ".join(sorted(values))]


LARGEST_PLAIN_BYTES = 2**18


def draw_raw_data(report: Report) -> Markup:
    document = json.dumps(report_document(report), separators=(",", ":"), allow_nan=False).encode()
    name = "".join(letter if letter.isalnum() or letter in "-_" else "-" for letter in report.execution_id)
    everything = (document, f"{name}.json", "application/json;charset=utf-8", "Everything as JSON")
    if len(document) > LARGEST_PLAIN_BYTES:  # the page would be too large to open with hundreds of runs
        compressed = gzip.compress(document, mtime=0)
        everything = (compressed, f"{name}.json.gz", "application/gzip", "All data as compressed JSON")
    runs = csv_text([*RUN_COLUMNS], [[*run_columns(result).values()] for result in report.results])
    return element(
        "section",
        element("h2", "Data"),
        element(
            "p",
            download(*everything),
            " ",
            download(runs.encode(), f"{name}-runs.csv", "text/csv;charset=utf-8", "Runs as CSV"),
        ),
        id="data",
    )
